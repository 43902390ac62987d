import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJsonStore } from '../src/server/storage/files/store/store.ts'
import { opaqueId } from '../src/server/storage/ids.ts'
import { lineOf } from '../src/server/storage/output-line.ts'
import { task } from '../test/helpers/servers/store-records.ts'
import { type BenchServer, binary, ended, startServer } from './fleet/server.ts'
import { type Measured, ratioRow, wholeProcess } from './measure.ts'
import type { Row } from './row.ts'

/** Output in tasks of 4 MB each: a backup takes a minute or two on two slow cores. */
const outputMB = 512
const taskMB = 4
const MB = 1024 ** 2
const writers = 8
/** Milliseconds for measuring writes without a backup. */
const idleTime = 10_000

/** 16 kB of a log with typical compressibility. */
function text(seed: number): string {
  let state = seed
  const next = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state % below
  }
  const words = [
    'GET',
    'POST',
    '/api/items/',
    '/static/app.js',
    'upstream',
    'timed out',
    'retry',
    'user',
    'cache',
  ]
  let log = ''
  while (log.length < 16_000) {
    const said = Array.from({ length: 6 }, () => words[next(words.length)]).join(' ')
    log += `2026-11-21T03:${next(60)}:${next(60)}.${next(1000)}Z web${next(300)} ${said} id=${next(1e9).toString(36)} ${next(5000)}ms\n`
  }
  return log
}

/** The output of one task. Equal tasks do not compress each other, because gzip looks back only 32 kB. */
function outputOf(timestamp: string): Buffer {
  const lines: Uint8Array[] = []
  for (let sequence = 0, bytes = 0; bytes < taskMB * MB; sequence++) {
    const line = lineOf({ hostId: 1, stream: 'stdout', sequence, timestamp, data: text(sequence) })
    lines.push(...line)
    for (const piece of line) bytes += piece.length
  }
  return Buffer.concat(lines)
}

/** Writes finished tasks with their output into the directory of a stopped server. */
async function seed(dataDir: string): Promise<void> {
  const store = await openJsonStore({ directory: join(dataDir, 'store') })
  const completedAt = new Date().toISOString()
  const output = outputOf(completedAt)
  for (let n = 0; n < outputMB / taskMB; n++) {
    const record = task(opaqueId(Date.now() - 3_600_000 + n), { status: 'SUCCESS', completedAt })
    await store.transact((tx) => tx.put('tasks', record))
    await mkdir(join(dataDir, 'tasks', record.id), { recursive: true, mode: 0o700 })
    await writeFile(join(dataDir, 'tasks', record.id, 'output.log'), output, { flag: 'wx', mode: 0o600 })
  }
  await store.close()
}

/** Milliseconds: the 99th percentile of writes by eight writers, each waiting for its own, while `work` runs. */
async function p99(server: BenchServer, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  const over = new AbortController()
  const all = Array.from({ length: writers }, async (_, writer) => {
    for (let n = 0; !over.signal.aborted; n++) {
      const start = performance.now()
      await server.call('PATCH', '/api/scripts/1', { description: `${writer} ${n}` })
      times.push(performance.now() - start)
    }
  })
  await work()
  over.abort()
  await Promise.all(all)
  times.sort((a, b) => a - b)
  return times[Math.floor(times.length * 0.99)] ?? Number.NaN
}

/** Measures both once, because each takes half a minute; files that were just written are already cached. */
async function once(ours: () => Promise<number>, baseline: () => Promise<number>): Promise<Measured> {
  const [mine, bare] = [await ours(), await baseline()]
  return { ours: mine, baseline: bare, ratios: [mine / bare] }
}

/** A backup of a running server vs `tar cz` of its directory, and write times during it vs without (reliability L06). */
export async function benchBackup(): Promise<Row[]> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-bench-backup-'))
  const dataDir = join(directory, 'server')
  let server = await startServer(dataDir)
  try {
    server.child.kill('SIGTERM')
    await ended(server.child)
    await seed(dataDir)
    server = await startServer(dataDir)
    await server.call('POST', '/api/scripts', { name: 'written', type: 'BASH', content: 'true' })
    const rate = (milliseconds: number) => outputMB / (milliseconds / 1000)
    const backup = () =>
      wholeProcess(process.execPath, [
        binary,
        'server',
        'backup',
        join(directory, 'ours.tar.gz'),
        '--yes',
        '--data-dir',
        dataDir,
      ])
    const tar = () =>
      wholeProcess('tar', ['czf', join(directory, 'tar.tar.gz'), '-C', dataDir, '--exclude=*.sock', '.'])
    const speed = await once(
      async () => rate(await backup()),
      async () => rate(await tar()),
    )
    const busy = await once(
      () => p99(server, backup),
      () => p99(server, () => new Promise((resolve) => setTimeout(resolve, idleTime))),
    )
    return [
      ratioRow(`a backup of ${outputMB} MB of output, vs tar cz`, 'MB/s', speed, { atLeast: 0.5 }),
      ratioRow('p99 of writes, 8 writers, during a backup, vs without', 'ms', busy, { atMost: 2 }),
    ]
  } finally {
    await server.stop()
    await rm(directory, { recursive: true })
  }
}
