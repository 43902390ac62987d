#!/usr/bin/env node
// CommonJS (see package.json beside it): Node takes 10 ms to start its loader of modules, which neither --version nor a Tab needs.
const { readFileSync } = require('node:fs')

// Node opens its debugger when SIGUSR1 comes and nobody listens to it: on a port at which every user of the machine may then run
// code as the user of this process. People send that signal to make a daemon open its log again.
process.on('SIGUSR1', () => {})

/** What an agent starts of itself (src/agent/processes/own-process.ts): a file, and what it exports. */
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

/** What rsm is bundled into: an agent neither holds nor reads what a server needs. */
function partOf([word]) {
  if (word === 'agent' || Object.hasOwn(agentProcesses, word)) return 'agent'
  return word === 'server' || word === 'quickstart' ? 'server' : 'cli'
}

/**
 * Milliseconds for each address of a name before the next one is tried: a lost SYN is sent again after a second, and a
 * distant answer takes half a second more. Node's 250 would never connect there.
 */
const addressTimeout = 1_500

/** Carries out what was asked, a process that an agent started of itself included. */
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
  Error.prepareStackTrace = (error, sites) => require('./stack-traces.js').stackOf(error, sites)
  const words = fromCommand(argv)
  if (partOf(words) === 'agent') require('./sparing.js')
  // Node's own choice is a directory of /tmp; and what quickstart tries has to leave nothing behind.
  // Nothing of ours is loaded before it is known: this is base-directory.ts again.
  const { HOME, XDG_CACHE_HOME } = process.env
  const caches = XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : HOME && `${HOME}/.cache`
  const cacheDirectory = caches && words[0] !== 'quickstart' ? `${caches}/rsm/compile` : undefined
  // `sudo -E` and `su` leave HOME with the user who typed them.
  const trusted = cacheDirectory && require('./trusted-directory.js').trustedDirectory(cacheDirectory)
  if (trusted) require('./from-files.js').keepCompiled(trusted)
  await carryOut(argv)
  isOver = true
}

const argv = process.argv.slice(2)
const [first, ...more] = fromCommand(argv)
if (more.length === 0 && (first === '--version' || first === '-V' || first === 'version')) {
  // Answered before anything is loaded: `rsm --version` costs what an empty Node costs.
  // What is packaged knows of which commit it is.
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
