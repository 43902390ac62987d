// Loads rsm from its files: a bundle, or the output of tsc. A single executable has from-one-file.js in its place.
const { mkdirSync, readFileSync, statSync } = require('node:fs')

const root = `${__dirname}/../`
const changed = (path) => statSync(root + path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** A file that comes with rsm, as text. */
exports.readOwn = (path) => readFileSync(root + path, 'utf8')

/** The source map of a file in a stack trace. */
exports.readMap = (file) => readFileSync(new URL(`${file}.map`, 'file:'), 'utf8')

/** Uses this directory as V8's code cache. */
exports.keepCompiled = (directory) => {
  const { enableCompileCache } = require('node:module')
  if (enableCompileCache === undefined) return
  try {
    // Node would apply the umask, which may let other users write.
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    enableCompileCache(directory)
  } catch {
    // A command must not fail because it cannot write the cache.
  }
}

/**
 * Directory to load from. A bundle starts with a fraction of the work. It is not used if tsc ran after it was made, so that
 * a checkout never runs or tests stale code; tsc then also writes its build record, which no installation has. Nor is it used
 * with node --conditions, because those choose other files.
 */
function home(part, file) {
  const made = changed(`dist/${part}/${file}`)
  const isChosen = process.execArgv.some((word) => word.startsWith('--conditions'))
  return made > 0 && made >= changed('dist/.tsbuildinfo') && !isChosen ? `dist/${part}` : 'dist/src'
}

/** Exports of a file of a part of rsm. */
exports.load = (part, file) => {
  // Completion loads CommonJS if it is bundled, which starts faster: a person waits for the answer to a Tab.
  const script = file.replace(/^(cli\/completion\/answer)\.js$/, '$1.cjs')
  const from = home(part, script)
  if (script === file || from === 'dist/src') return import(`../${from}/${file}`)
  return require(`${root}${from}/${script}`)
}
