#!/usr/bin/env node
import { readFileSync, statSync } from 'node:fs'

const changed = (path) => statSync(new URL(path, import.meta.url), { throwIfNoEntry: false })?.mtimeMs ?? 0

/**
 * The bundle starts with a third less work. What has been compiled since it was made is not in it, so that nobody ever runs, or
 * tests, yesterday's code: whatever tsc writes, it writes its record too, which no installation has.
 */
function newest(file) {
  const bundled = changed(`../dist/cli/${file}`)
  const isCurrent = bundled > 0 && bundled >= changed('../dist/.tsbuildinfo')
  return isCurrent ? `../dist/cli/${file}` : `../dist/src/${file}`
}

/** What holds a server or an agent is not in the bundle. */
function commandLine(topic) {
  const isApart = topic === 'server' || topic === 'agent' || topic === 'quickstart'
  return isApart ? '../dist/src/cli.js' : newest('cli.js')
}

const argv = process.argv.slice(2)
if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V' || argv[0] === 'version')) {
  // Answered before anything is loaded: `rsm --version` costs what an empty Node costs.
  const { name, version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  process.stdout.on('error', ({ code, message }) => {
    if (code !== 'EPIPE') process.stderr.write(`rsm: cannot write the output: ${message}\n`)
    process.exit(code === 'EPIPE' ? 141 : 6)
  })
  process.stdout.write(`${name}/${version} ${process.platform}-${process.arch} node-${process.version}\n`)
} else {
  if (argv[0] === 'agent') {
    // An agent runs on every host for years and does little: 2 MB less there is worth a slower compiler.
    const { setFlagsFromString } = await import('node:v8')
    setFlagsFromString('--optimize-for-size')
    setFlagsFromString('--max-semi-space-size=1')
  }
  // Node's own choice is a directory of /tmp; and what quickstart tries has to leave nothing behind.
  // Nothing of ours is loaded before it is known: this is base-directory.ts again.
  const { HOME, XDG_CACHE_HOME } = process.env
  const caches = XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : HOME && `${HOME}/.cache`
  const cacheDirectory = caches && argv[0] !== 'quickstart' ? `${caches}/rsm/compile` : undefined
  const { default: nodeModule } = await import('node:module')
  if (cacheDirectory !== undefined) nodeModule.enableCompileCache?.(cacheDirectory)
  if (argv[0] === '__complete') {
    // What a shell asks for a Tab: a person waits for it, so that nothing else of the command line is loaded.
    const { answer } = await import(newest('ui/completion/answer.js'))
    await answer(argv[1] ?? '', new URL('..', import.meta.url))
  } else {
    const { main } = await import(commandLine(argv[0]))
    await main(argv)
  }
}
