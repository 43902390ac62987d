#!/usr/bin/env node
// Runs the gate, which is every test outside test/long (`npm test`), or families of test/long, each alone
// (`npm run test:long -- FAMILY…`, without a name all of them). Needs `npm run build`.
// Files of the gate share processes by folder. One that fails is run once more, alone; if it passes then, its tests are listed as flaky.
// The output of tests and their servers goes to dist/test-output, and to the terminal if a test of the file fails.
// Ends with one line: N passed, N failed.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from './bundling/bundling.js'

process.chdir(root)
const outputs = 'dist/test-output'
/** Folders whose tests need no process, socket or descriptor of their own. */
const inThreads = /^(core|cli\/(flags|output|selector|text))\//
/** Files of processes that run at a time. */
const lanes = 3
/** If more files than this fail, the cause is not timing. */
const mostRepeated = 16
/** Files that share a process: for most, starting one and loading the code takes longer than their tests. */
const mostTogether = 10

const sources = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => name.slice(0, -'.test.ts'.length))
  .toSorted()
const nameOf = (file) => /dist\/test\/(.*)\.test\.js$/.exec(file)?.[1] ?? file
const fileOf = (name) => `dist/test/${name}.test.js`
const outputOf = (name) => join(outputs, `${name}.log`)
const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(1)} s`

/** Results of the last run of each file: passed tests with their milliseconds, failures, and whether it ran to its end. */
const results = new Map()
const resultOf = (name) => {
  if (!results.has(name)) results.set(name, { passed: [], failed: [], skipped: 0, isOver: false })
  return results.get(name)
}

/** Test files that are loaded as one, by the path of that file: `{names, titles}`, its titles in order, with the file of each. */
const groups = new Map()
const groupFolder = 'dist/test-groups'

/** Path of the file that AVA runs for files that share a process. A `todo` before the tests of each names their file. */
function together(names) {
  if (names.length === 1) return fileOf(names[0])
  const path = join(groupFolder, `${names[0].replaceAll('/', '-')}.test.js`)
  const lines = names.flatMap((name) => [`import './file.js?${name}'`, `import '../../${fileOf(name)}'`])
  writeFileSync(path, `${lines.join('\n')}\n`)
  groups.set(join(root, path), { names, titles: new Map(), over: new Set() })
  return path
}

function take(event) {
  const group = groups.get(event.testFile)
  // For events without a title: the file of the running test, which is the first that has not ended.
  const underWay = () =>
    [...group.titles].find(([title]) => !group.over.has(title))?.[1] ?? group.names.at(-1)
  const of = (title, file) => {
    const shared = groups.get(file)
    return shared ? (shared.titles.get(title) ?? underWay()) : nameOf(file)
  }
  const name = event.testFile && of(event.title, event.testFile)
  const fail = (title, at = name) => {
    resultOf(at).failed.push(title)
    console.log(`  ✘ ${at} › ${title}`)
  }
  switch (event.type) {
    case 'declared-test':
      if (group && event.todo) group.file = event.title
      else group?.titles.set(event.title, group.file)
      return
    case 'test-passed':
      group?.over.add(event.title)
      resultOf(name).passed.push([event.title, event.duration])
      console.log(
        `  ✔ ${name} › ${event.title}${event.duration < 1000 ? '' : ` (${seconds(event.duration)})`}`,
      )
      for (const line of event.logs ?? []) console.log(`    ${line.replaceAll('\n', '\n    ')}`)
      return
    case 'test-failed':
    case 'hook-failed':
      group?.over.add(event.title)
      return fail(event.title)
    case 'uncaught-exception':
    case 'unhandled-rejection':
    case 'internal-error':
    case 'missing-ava-import':
    case 'process-exit':
      return fail(`(${event.type}) ${event.err?.message ?? ''}`, name ?? '')
    case 'worker-failed':
      return fail(`(ended with ${event.signal ?? event.nonZeroExitCode ?? event.err?.message})`, name ?? '')
    case 'timeout':
      for (const [file, titles] of event.pending)
        for (const title of titles) fail(`${title} (no end within ${event.period} ms)`, of(title, file))
      return
    case 'selected-test':
      if (event.skip) {
        group?.over.add(event.title)
        resultOf(name).skipped += 1
        console.log(`  - ${name} › ${event.title}`)
      }
      return
    case 'worker-finished':
      for (const each of group?.names ?? [name]) resultOf(each).isOver = true
      return
    case 'worker-stdout':
    case 'worker-stderr':
      mkdirSync(dirname(outputOf(name)), { recursive: true })
      appendFileSync(outputOf(name), event.text)
  }
}

/** Runs files with one configuration of ava.config.js, those of a nested list in one process, and shows AVA's report of failures. */
async function run(way, files) {
  const names = files.flat()
  for (const name of names) {
    results.delete(name)
    rmSync(outputOf(name), { force: true })
  }
  const paths = files.map((file) => (Array.isArray(file) ? together(file) : fileOf(file)))
  const ava = spawn(process.execPath, ['node_modules/ava/entrypoints/cli.mjs', ...paths], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: { ...process.env, RSM_TESTS: way },
  })
  const ended = once(ava, 'close')
  let said = ''
  for (const stream of [ava.stdout, ava.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      said += text
    })
  for await (const line of createInterface({ input: ava.stdio[3] })) take(JSON.parse(line))
  const [code, signal] = await ended
  for (const { failed, passed, skipped, isOver } of names.map(resultOf)) {
    if (failed.length > 0) continue
    // AVA may have ended before the other files ran.
    if (!isOver) failed.push(`(not run to its end: AVA ended with ${code ?? signal})`)
    else if (passed.length + skipped === 0) failed.push('(no test in it)')
  }
  if (code === 0) return
  const report = said.indexOf('\n  ─\n')
  console.log(report === -1 ? said : said.slice(report + 1))
}

/** Code that a shared process cannot have: hooks, and a top-level `await`, which would let the next file begin. */
const isForOneFile = /^(test\.(before|after)|((const|let) .*= |for )?await )/m

/** Names of test files, grouped by folder. */
function byFolder(names) {
  const folders = new Map()
  for (const name of names) {
    // Both kinds of store run the same suites, so each counts as a folder.
    const depth = name.startsWith('server/storage/') ? 3 : 2
    const folder = name.split('/').slice(0, -1).slice(0, depth).join('/')
    folders.set(folder, [...(folders.get(folder) ?? []), name])
  }
  return [...folders.values()]
}

/** The same files, with each folder split into lists of a few. */
function grouped(names) {
  const alone = names.filter((name) => isForOneFile.test(readFileSync(`test/${name}.test.ts`, 'utf8')))
  const others = names.filter((name) => !alone.includes(name))
  const lists = byFolder(others).flatMap((all) => {
    const size = Math.ceil(all.length / Math.ceil(all.length / mostTogether))
    return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size))
  })
  return [...alone, ...lists]
}

/** Runs files in lanes, each of which takes some of the remaining files; fewer towards the end. Each start of AVA takes a second. */
async function inLanes(way, files) {
  const left = [...files]
  const lane = async () => {
    while (left.length > 0) await run(way, left.splice(0, Math.ceil(left.length / (lanes * 3))))
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

const failedFiles = () => [...results].filter(([, { failed }]) => failed.length > 0).map(([name]) => name)

/** One PostgreSQL for all files, each of which creates its own databases. */
async function startPostgres() {
  const { programs, startPostgres } = await import('../dist/test/helpers/servers/postgres-instances.js')
  if (programs === null) return
  const { port } = await startPostgres((end) => process.once('exit', end), { max_connections: '600' })
  process.env.RSM_TEST_PG_PORT = String(port)
}

/** Runs each failed file once more, alone. Resolves to the titles that failed the first time only. */
async function repeat() {
  const flaky = []
  const files = failedFiles()
  if (files.length > mostRepeated) return flaky
  for (const name of files) {
    const first = results.get(name).failed.map((title) => `${name} › ${title}`)
    console.log(`\n  once more, alone: ${name}`)
    await run(inThreads.test(name) ? 'threads' : 'serial', [name])
    if (resultOf(name).failed.length === 0) flaky.push(...first)
  }
  return flaky
}

/** Fails a file with a title that another file of its folder has: files that share a process share AVA's list of titles. */
function failEqualTitles(names) {
  for (const files of byFolder(names)) {
    const firsts = new Map()
    for (const name of files)
      for (const [title] of resultOf(name).passed) {
        const first = firsts.get(title)
        if (first === undefined) firsts.set(title, name)
        else if (first !== name) resultOf(name).failed.push(`${title} (a title of ${first} too)`)
      }
  }
}

function showOutput(name) {
  let text = ''
  try {
    text = readFileSync(outputOf(name), 'utf8')
  } catch {
    return
  }
  console.log(`\n  what ${name} wrote (all of it: ${outputOf(name)}):\n${text.slice(-8000)}`)
}

async function gate() {
  const names = sources.filter((name) => !name.startsWith('long/'))
  await run('threads', grouped(names.filter((name) => inThreads.test(name))))
  await startPostgres()
  await inLanes('serial', grouped(names.filter((name) => !inThreads.test(name))))
  const flaky = await repeat()
  failEqualTitles(names)
  const slowest = [...results]
    .flatMap(([name, { passed }]) => passed.map(([title, took]) => [took, `${name} › ${title}`]))
    .toSorted(([one], [other]) => other - one)
    .slice(0, 10)
  console.log('\n  slowest:')
  for (const [took, title] of slowest) console.log(`    ${seconds(took)}  ${title}`)
  if (flaky.length > 0) console.log(`\n  flaky:\n${flaky.map((title) => `    ${title}`).join('\n')}`)
}

/** Requirements of a family beside its tests. */
const preparations = {
  systemd() {
    const mayBoot = process.getuid() === 0 && spawnSync('mmdebstrap', ['--version']).status === 0
    if (process.env.RSM_SYSTEMD_ROOT || !mayBoot) return
    const directory = mkdtempSync(join(tmpdir(), 'rsm-systemd-'))
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
    process.env.RSM_SYSTEMD_ROOT = join(directory, 'root')
    spawnSync('bash', ['.ci/systemd-root', process.env.RSM_SYSTEMD_ROOT], { stdio: 'inherit' })
  },
}

async function long(asked) {
  const families = [...new Set(sources.flatMap((name) => /^long\/([^/]+)\//.exec(name)?.[1] ?? []))]
  const unknown = asked.filter((family) => !families.includes(family))
  if (unknown.length > 0) {
    console.error(`unknown family: ${unknown.join(', ')}; there are ${families.join(', ')}`)
    process.exit(2)
  }
  await startPostgres()
  const lines = []
  for (const family of asked.length > 0 ? asked : families) {
    const began = performance.now()
    preparations[family]?.()
    const names = sources.filter((name) => name.startsWith(`long/${family}/`))
    // Tests that run beside them would distort the times that they measure.
    await run(family === 'timing' ? 'long-serial' : 'long', names)
    const of = (key) => names.reduce((sum, name) => sum + resultOf(name)[key].length, 0)
    const skipped = names.reduce((sum, name) => sum + resultOf(name).skipped, 0)
    const counts = `${of('passed')} passed, ${of('failed')} failed, ${skipped} skipped`
    lines.push(`  ${family}: ${counts} in ${seconds(performance.now() - began)}`)
    console.log(lines.at(-1))
  }
  console.log(`\n${lines.join('\n')}`)
}

// PostgreSQL ends with this process.
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
])
  process.once(signal, () => process.exit(128 + number))
for (const folder of [outputs, groupFolder]) rmSync(folder, { recursive: true, force: true })
mkdirSync(groupFolder, { recursive: true })
writeFileSync(
  join(groupFolder, 'file.js'),
  "import test from 'ava'\n\ntest.todo(new URL(import.meta.url).search.slice(1))\n",
)
const [first, ...asked] = process.argv.slice(2)
if (first === '--long') await long(asked)
else await gate()

const failed = failedFiles()
for (const name of failed) showOutput(name)
if (failed.length > 0) {
  console.log('\n  failed:')
  for (const name of failed)
    for (const title of results.get(name).failed) console.log(`    ${name} › ${title}`)
}
const skipped = [...results.values()].reduce((sum, { skipped }) => sum + skipped, 0)
if (skipped > 0) console.log(`\n${skipped} skipped: a program or a right that they need is missing`)
const count = (key) => [...results.values()].reduce((sum, result) => sum + result[key].length, 0)
console.log(`\n${count('passed')} passed, ${count('failed')} failed`)
process.exit(failed.length === 0 ? 0 : 1)
