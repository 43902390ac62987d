import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

/** Bytes of the file that is copied; RSM_COPY_MIB=1024 makes it large. */
const size = Number(process.env['RSM_COPY_MIB'] ?? 64) * 1024 * 1024
const hosts = ['web1', 'web2', 'web3']
/** Seconds that a copy to all three hosts takes at least, so that kills come in its middle. */
const copyTime = 8
const rate = Math.ceil((hosts.length * size) / copyTime)
/** Milliseconds per step: a busy machine may copy only 4 MB a second. */
const patience = 100_000 + size / 4_000

/**
 * Prints the number of its reads, and each file that is neither empty nor the old one nor one with this size, first and last
 * bytes.
 */
const reader = `const { openSync, readSync, fstatSync, closeSync } = require('node:fs')
const [path, size, ends] = process.argv.slice(1)
const piece = Buffer.alloc(64)
let reads = 0
const look = () => {
  let fd
  try { fd = openSync(path, 'r') } catch { return setImmediate(look) }
  const length = fstatSync(fd).size
  const at = (from) => piece.subarray(0, readSync(fd, piece, 0, 64, from)).toString('base64')
  const found = length === 4 ? 'old' : length + ' ' + at(0) + at(Math.max(0, length - 64))
  if (found !== 'old' && found !== size + ' ' + ends) console.log('a part', found)
  closeSync(fd)
  reads += 1
  setImmediate(look)
}
process.on('SIGTERM', () => { console.log('reads', reads); process.exit() })
look()`

async function sumOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(path, { highWaterMark: 1024 * 1024 }))
    hash.update(piece as Buffer)
  return hash.digest('hex')
}

async function large(path: string): Promise<void> {
  const file = await open(path, 'w')
  for (let at = 0; at < size; at += 1024 * 1024) await file.write(randomBytes(1024 * 1024))
  await file.close()
}

/** Reads a file in a loop in a process of its own; `end` stops it and returns its output. */
async function readInLoop(t: ExecutionContext, path: string, source: string): Promise<() => Promise<string>> {
  const file = await open(source)
  const end = async (from: number) =>
    (await file.read(Buffer.alloc(64), 0, 64, from)).buffer.toString('base64')
  const ends = (await end(0)) + (await end(size - 64))
  await file.close()
  const child = spawn(process.execPath, ['-e', reader, path, String(size), ends], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (piece: Buffer) => (said += piece.toString()))
  const closed = new Promise((resolve) => child.once('close', resolve))
  return async () => {
    child.kill('SIGTERM')
    await closed
    return said
  }
}

async function site(t: ExecutionContext) {
  const server = await startServerProcess(t)
  const agents = new Map<string, ChildProcess>()
  const directories = new Map<string, string>()
  const start = async (hostname: string) => {
    const dataDir = directories.get(hostname) ?? temporaryDirectory(t)
    const isNew = !directories.has(hostname)
    directories.set(hostname, dataDir)
    const enrollToken = isNew ? (await server.data('POST', '/api/enrollment-tokens', {})).token : ''
    agents.set(hostname, await agentProcess(t, server, dataDir, { hostname, enrollToken }))
  }
  for (const hostname of hosts) await start(hostname)
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  return {
    server,
    copy: (...words: string[]) => startRsm(['cp', ...words, '--limit-rate', String(rate), '--json'], env),
    /** Kills the server and one agent during their work, and starts both again. */
    killBoth: async (hostname: string) => {
      await Promise.all([server.kill(), kill(agents.get(hostname) as ChildProcess, 'SIGKILL')])
      await delay(500)
      await server.start()
      await start(hostname)
    },
  }
}

/** Waits, and keeps extending the runner's timeout meanwhile. */
function step(t: ExecutionContext, what: string, holds: () => boolean): Promise<void> {
  return until(
    what,
    () => {
      t.timeout(110_000)
      return holds()
    },
    patience,
  )
}

/** The result of a command once it has ended. */
async function endOf(t: ExecutionContext, { child, done }: ReturnType<typeof startRsm>) {
  t.teardown(() => child.kill('SIGKILL'))
  await step(t, 'the command has ended', () => child.exitCode !== null || child.signalCode !== null)
  return done
}

const sizesIn = (directory: string): number[] =>
  readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0)

const partsIn = (directory: string): string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.part'))

test('rsm cp to three hosts and back is complete although the server is killed three times and an agent twice', async (t) => {
  t.timeout(110_000)
  const { server, copy, killBoth } = await site(t)
  const [ours, theirs] = [temporaryDirectory(t), temporaryDirectory(t)]
  const source = join(ours, 'large')
  await large(source)
  const sum = await sumOf(source)
  const readers: (() => Promise<string>)[] = []
  for (const host of hosts) {
    mkdirSync(join(theirs, host))
    writeFileSync(join(theirs, host, 'file'), 'old\n')
    readers.push(await readInLoop(t, join(theirs, host, 'file'), source))
  }

  const began = performance.now()
  const sending = copy(source, `web[1-3]:${theirs}/%h/file`)
  const uploaded = () => Math.max(0, ...sizesIn(join(server.dataDir, 'files')))
  await step(t, 'a part is on the server', () => uploaded() > size / 8)
  const atUpload = uploaded()
  await server.kill()
  await delay(500)
  await server.start()
  const part = () => Math.max(0, ...sizesIn(join(theirs, 'web2')).filter((bytes) => bytes !== 4))
  await step(t, 'a part is on a host', () => part() > size / 8)
  const atCopy = part()
  await killBoth('web2')
  const sent = await endOf(t, sending)
  t.is(sent.exit, 0, sent.stderr)
  t.like(JSON.parse(sent.stdout), { status: 'SUCCESS', counts: { SUCCESS: hosts.length } })
  t.log(
    `to hosts: ${size} bytes; server killed at ${atUpload} of the upload, and with web2 at ${atCopy} of the copy; ${Math.round(performance.now() - began)} ms`,
  )
  for (const host of hosts) {
    t.is(await sumOf(join(theirs, host, 'file')), sum)
    t.timeout(110_000)
  }
  t.deepEqual(partsIn(theirs), [])
  for (const end of readers) t.regex(await end(), /^reads \d{2,}\n$/)

  const back = performance.now()
  const out = join(ours, 'back')
  const files = join(server.dataDir, 'files')
  const known = new Set(readdirSync(files))
  const receiving = copy(`web[1-3]:${theirs}/%h/file`, out)
  const fetched = () =>
    Math.max(
      0,
      ...readdirSync(files)
        .filter((name) => !known.has(name))
        .map((name) => statSync(join(files, name), { throwIfNoEntry: false })?.size ?? 0),
    )
  await step(t, 'a part is on the server', () => fetched() > size / 8)
  const atFetch = fetched()
  await killBoth('web1')
  const received = await endOf(t, receiving)
  t.is(received.exit, 0, received.stderr)
  t.like(JSON.parse(received.stdout), { type: 'FETCH', status: 'SUCCESS' })
  t.log(`from hosts: server and web1 killed at ${atFetch}; ${Math.round(performance.now() - back)} ms`)
  for (const host of hosts) {
    t.is(await sumOf(join(out, host, 'file')), sum)
    t.timeout(110_000)
  }
  t.deepEqual(partsIn(ours), [])
})
