#!/usr/bin/env node
// CommonJS (see package.json beside it): Node takes 10 ms to start its loader of modules, which neither --version nor a Tab needs.
require('./no-debugger.js')
const { readFileSync, statSync } = require('node:fs')

const root = `${__dirname}/../`
const changed = (path) => statSync(root + path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** What rsm is bundled into: an agent neither holds nor reads what a server needs. */
function partOf([word]) {
  if (word === 'agent' || word === '__pty' || word === '__facts') return 'agent'
  return word === 'server' || word === 'quickstart' ? 'server' : 'cli'
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

const load = (part, file) => import(`../${home(part, file)}/${file}`)

/** What a shell asks for a Tab: a person waits for it, so that nothing else of the command line is loaded. */
async function completion() {
  const bundled = 'ui/completion/answer.cjs'
  const from = home('cli', bundled)
  return from === 'dist/src'
    ? import('../dist/src/ui/completion/answer.js')
    : require(`${root}${from}/${bundled}`)
}

/** Carries out what was asked, a process that an agent started of itself included (src/agent/processes/own-process.ts). */
async function carryOut(argv) {
  const [word, first = ''] = argv
  if (word === '__complete') return (await completion()).answer(first)
  if (word === '__pty') return (await load('agent', 'agent/terminals/pty-process.js')).holdTerminals(first)
  if (word === '__facts') return (await load('agent', 'agent/reports/facts-process.js')).printDiskSize()
  return (await load(partOf(argv), 'cli.js')).main(argv)
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

const readMap = (file) => readFileSync(new URL(`${file}.map`, 'file:'), 'utf8')

async function run(argv) {
  let isOver = false
  process.once('beforeExit', () => {
    if (isOver) return
    // A command that nothing can bring to its end any more has not succeeded.
    process.stderr.write('rsm: internal error: the command waits for what never comes\n')
    process.exitCode = 6
  })
  Error.prepareStackTrace = (error, sites) => require('./stack-traces.js').stackOf(error, sites, readMap)
  if (partOf(argv) === 'agent') {
    // An agent runs on every host for years and does little: 2 MB less there is worth a slower compiler. What goes through
    // its terminals lives for milliseconds, and waits in memory for the next collection: that has to come soon.
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
  await carryOut(argv)
  isOver = true
}

const argv = process.argv.slice(2)
if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V' || argv[0] === 'version')) {
  // Answered before anything is loaded: `rsm --version` costs what an empty Node costs.
  // What is packaged knows of which commit it is.
  const { name, version, gitHead } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
  const commit = gitHead === undefined ? '' : ` commit ${gitHead.replace(/^(.{8})[0-9a-f]*/, '$1')}`
  process.stdout.on('error', ({ code, message }) => {
    if (code !== 'EPIPE') process.stderr.write(`rsm: cannot write the output: ${message}\n`)
    process.exit(code === 'EPIPE' ? 141 : 6)
  })
  process.stdout.write(
    `${name}/${version} ${process.platform}-${process.arch} node-${process.version}${commit}\n`,
  )
} else if (openFilesAllowed() < leastOpenFiles(argv)) {
  const [has, needs] = [openFilesAllowed(), leastOpenFiles(argv)]
  process.stderr.write(`rsm: too many open files: it may have ${has} at once, and needs ${needs} to start
     raise the limit: ulimit -n 4096, or LimitNOFILE=4096 in a unit\n`)
  process.exitCode = 6
} else void run(argv)
