#!/usr/bin/env node
// CommonJS (see package.json beside it): Node takes 10 ms to start its loader of modules, which neither --version nor a Tab needs.
require('./no-debugger.js')
const { readFileSync, statSync } = require('node:fs')

const root = `${__dirname}/../`
const changed = (path) => statSync(root + path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/**
 * The bundle starts with a third less work. What has been compiled since it was made is not in it, so that nobody ever runs, or
 * tests, yesterday's code: whatever tsc writes, it writes its record too, which no installation has.
 */
function isCurrent(bundled) {
  const made = changed(bundled)
  return made > 0 && made >= changed('dist/.tsbuildinfo')
}

/** What holds a server or an agent is not in the bundle. */
function commandLine(topic) {
  const isApart = topic === 'server' || topic === 'agent' || topic === 'quickstart'
  return !isApart && isCurrent('dist/cli/cli.js') ? '../dist/cli/cli.js' : '../dist/src/cli.js'
}

/** What a shell asks for a Tab: a person waits for it, so that nothing else of the command line is loaded. */
async function completion() {
  const bundled = 'dist/cli/ui/completion/answer.cjs'
  return isCurrent(bundled) ? require(root + bundled) : import('../dist/src/ui/completion/answer.js')
}

/** What a command may open at once as it is loaded; a server that has fewer fails in ways that tell of anything else. */
function leastOpenFiles([topic, verb]) {
  return (topic === 'server' && verb === 'start') || topic === 'quickstart' ? 128 : 48
}

/** Node has raised its soft limit to the hard one. */
function openFilesAllowed() {
  try {
    return Number(
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ?? Infinity,
    )
  } catch {
    return Infinity
  }
}

async function run(argv) {
  let isOver = false
  process.once('beforeExit', () => {
    if (isOver) return
    // A command that nothing can bring to its end any more has not succeeded.
    process.stderr.write('rsm: internal error: the command waits for what never comes\n')
    process.exitCode = 6
  })
  if (argv[0] === 'agent') {
    // An agent runs on every host for years and does little: 2 MB less there is worth a slower compiler.
    const { setFlagsFromString } = require('node:v8')
    setFlagsFromString('--optimize-for-size')
    setFlagsFromString('--max-semi-space-size=1')
  }
  // Node's own choice is a directory of /tmp; and what quickstart tries has to leave nothing behind.
  // Nothing of ours is loaded before it is known: this is base-directory.ts again.
  const { HOME, XDG_CACHE_HOME } = process.env
  const caches = XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : HOME && `${HOME}/.cache`
  const cacheDirectory = caches && argv[0] !== 'quickstart' ? `${caches}/rsm/compile` : undefined
  if (cacheDirectory !== undefined) require('node:module').enableCompileCache?.(cacheDirectory)
  if (argv[0] === '__complete') await (await completion()).answer(argv[1] ?? '', root)
  else await (await import(commandLine(argv[0]))).main(argv)
  isOver = true
}

const argv = process.argv.slice(2)
if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V' || argv[0] === 'version')) {
  // Answered before anything is loaded: `rsm --version` costs what an empty Node costs.
  const { name, version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  process.stdout.on('error', ({ code, message }) => {
    if (code !== 'EPIPE') process.stderr.write(`rsm: cannot write the output: ${message}\n`)
    process.exit(code === 'EPIPE' ? 141 : 6)
  })
  process.stdout.write(`${name}/${version} ${process.platform}-${process.arch} node-${process.version}\n`)
} else if (openFilesAllowed() < leastOpenFiles(argv)) {
  const [has, needs] = [openFilesAllowed(), leastOpenFiles(argv)]
  process.stderr.write(`rsm: too many open files: it may have ${has} at once, and needs ${needs} to start
     raise the limit: ulimit -n 4096, or LimitNOFILE=4096 in a unit\n`)
  process.exitCode = 6
} else void run(argv)
