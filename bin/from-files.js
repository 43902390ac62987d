// Loads rsm from its files: a bundle, or what tsc compiled. A single executable has from-one-file.js in its place.
const { mkdirSync, readFileSync, statSync } = require('node:fs')

const root = `${__dirname}/../`
const changed = (path) => statSync(root + path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** A file that comes with rsm, as text. */
exports.readOwn = (path) => readFileSync(root + path, 'utf8')

/** The source map of a file that a stack names. */
exports.readMap = (file) => readFileSync(new URL(`${file}.map`, 'file:'), 'utf8')

/** Keeps what V8 has compiled in this directory, or reads it there. */
exports.keepCompiled = (directory) => {
  const { enableCompileCache } = require('node:module')
  if (enableCompileCache === undefined) return
  try {
    // Node would apply the umask, which may let other users write.
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    enableCompileCache(directory)
  } catch {
    // A command does not fail because nothing can be kept.
  }
}

/**
 * Where to load from. A bundle starts with a fraction of the work. What has been compiled since it was made is not in it, so
 * that nobody ever runs, or tests, yesterday's code: whatever tsc writes, it writes its record too, which no installation has.
 * Nor are the files that a condition (node --conditions) would choose.
 */
function home(part, file) {
  const made = changed(`dist/${part}/${file}`)
  const isChosen = process.execArgv.some((word) => word.startsWith('--conditions'))
  return made > 0 && made >= changed('dist/.tsbuildinfo') && !isChosen ? `dist/${part}` : 'dist/src'
}

/** What a file of a part of rsm exports. */
exports.load = (part, file) => {
  // A Tab is answered by CommonJS where it can be: a person waits for it.
  const script = file.replace(/^(cli\/completion\/answer)\.js$/, '$1.cjs')
  const from = home(part, script)
  if (script === file || from === 'dist/src') return import(`../${from}/${file}`)
  return require(`${root}${from}/${script}`)
}
