#!/usr/bin/env node
// CommonJS (see package.json beside it): Node's module loader takes 10 ms to start, and neither --version nor a Tab needs it.
const { readFileSync } = require('node:fs')

// Without a listener for SIGUSR1, Node opens its debugger on a port through which every user of the machine can run code as the
// user of this process. Administrators send that signal to make a daemon reopen its log.
process.on('SIGUSR1', () => {})

/** Processes of its own that an agent starts (src/agent/processes/programs.ts): file and export. */
const agentProcesses = {
  __pty: ['agent/terminals/pty-process.js', 'serveTerminals'],
  __upgrade: ['agent/upgrade/upgrade.js', 'upgradeAgent'],
  __copy: ['agent/files/worker.js', 'workOnFiles'],
  __facts: ['agent/reports/facts-process.js', 'printDiskSize'],
}

/** The words of a command line from its command on, behind global flags. */
function fromCommand(argv) {
  const takesValue = /^--(url|context|token-file|ca-file|tls-fingerprint)$/
  let at = 0
  while (/^(--(?!version|help)|-q)/.test(argv[at])) at += takesValue.test(argv[at]) ? 2 : 1
  return argv.slice(at)
}

/** The part of the bundle to load: an agent neither contains nor reads the code of a server. */
function partOf([word]) {
  if (word === 'agent' || Object.hasOwn(agentProcesses, word)) return 'agent'
  return word === 'server' || word === 'quickstart' ? 'server' : 'cli'
}

/**
 * Milliseconds for each address of a name before the next one is tried: a lost SYN is sent again after a second, and a
 * distant answer takes half a second more. Node's 250 would never connect there.
 */
const addressTimeout = 1_500

/** Runs a command, or one of the agent's own processes. */
async function carryOut(argv) {
  const [word, ...words] = argv
  const net = require('node:net')
  net.setDefaultAutoSelectFamilyAttemptTimeout(
    Math.max(addressTimeout, net.getDefaultAutoSelectFamilyAttemptTimeout()),
  )
  const { load } = require('./from-files.js')
  if (word === '__complete') return (await load('cli', 'cli/completion/answer.js')).answer(words[0] ?? '')
  if (Object.hasOwn(agentProcesses, word)) {
    const [file, name] = agentProcesses[word]
    return (await load('agent', file))[name](...words)
  }
  return (await load(partOf(fromCommand(argv)), 'cli.js')).main(argv)
}

/** Open files that a command needs to load; a server with fewer fails with misleading errors. */
function leastOpenFiles([topic, verb]) {
  return (topic === 'server' && verb === 'start') || topic === 'quickstart' ? 128 : 48
}

/** The soft limit, which Node has raised to the hard one. */
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
    // The event loop is empty but the command has not ended, so it has not succeeded.
    process.stderr.write('rsm: internal error: the command waits for what never comes\n')
    process.exitCode = 6
  })
  Error.prepareStackTrace = (error, sites) => require('./stack-traces.js').stackOf(error, sites)
  const words = fromCommand(argv)
  if (partOf(words) === 'agent') require('./sparing.js')
  // Node would choose a directory in /tmp, and a trial with quickstart must leave nothing behind.
  // Repeats `baseDirectory` (private-files.ts), because no module is loaded before the directory is known.
  const { HOME, XDG_CACHE_HOME } = process.env
  const caches = XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : HOME && `${HOME}/.cache`
  const cacheDirectory = caches && words[0] !== 'quickstart' ? `${caches}/rsm/compile` : undefined
  // `sudo -E` and `su` leave HOME with the user who ran them.
  const trusted = cacheDirectory && require('./trusted-directory.js').trustedDirectory(cacheDirectory)
  if (trusted) require('./from-files.js').keepCompiled(trusted)
  await carryOut(argv)
  isOver = true
}

const argv = process.argv.slice(2)
const [first, ...more] = fromCommand(argv)
if (more.length === 0 && (first === '--version' || first === '-V' || first === 'version')) {
  // Answer before loading anything: `rsm --version` takes no longer than an empty Node.
  // Packages contain the commit that they were made from.
  const { name, version, gitHead } = JSON.parse(require('./from-files.js').readOwn('package.json'))
  const commit = gitHead === undefined ? '' : ` commit ${gitHead.replace(/^(.{8})[0-9a-f]*/, '$1')}`
  process.stdout.on('error', ({ code, message }) => {
    if (code !== 'EPIPE') process.stderr.write(`rsm: cannot write the output: ${message}\n`)
    process.exit(code === 'EPIPE' ? 141 : 6)
  })
  process.stdout.write(
    `${name}/${version} ${process.platform}-${process.arch} node-${process.version}${commit}\n`,
  )
} else if (openFilesAllowed() < leastOpenFiles([first, ...more])) {
  const [has, needs] = [openFilesAllowed(), leastOpenFiles([first, ...more])]
  process.stderr.write(`rsm: too many open files: it may have ${has} at once, and needs ${needs} to start
     raise the limit: ulimit -n 4096, or LimitNOFILE=4096 in a unit\n`)
  process.exitCode = 6
} else void run(argv)
