import { createHash } from 'node:crypto'
import { GroupedOutput } from '../../src/cli/output/grouped.ts'
import type { TaskEvent } from '../../src/client/watch.ts'
import type { LogEntry } from '../../src/core/protocol/http/logs.ts'
import type { Task } from '../../src/core/protocol/http/tasks.ts'
import type { Row } from '../row.ts'

const hostCount = 1000
const bytesPerHost = 100 * 1024
/** Bytes per frame on the wire. */
const bytesPerPiece = 16 * 1024
const rounds = 5
const goalSeconds = 1

const hostnameOf = (hostId: number) => `web${hostId}`

/** Entries of hosts of which nine in ten wrote the same; the others differ in one line near the end. */
function pieces(): LogEntry[] {
  const line = 'the quick brown fox jumps over the lazy dog, and over "quoted" \\ things\n'
  const usual = line.repeat(Math.ceil(bytesPerHost / line.length)).slice(0, bytesPerHost)
  const entries: LogEntry[] = []
  for (let at = 0; at < bytesPerHost; at += bytesPerPiece)
    for (let hostId = 1; hostId <= hostCount; hostId++) {
      const isOdd = hostId % 10 === 0 && at + bytesPerPiece >= bytesPerHost
      const data = usual.slice(at, at + bytesPerPiece)
      entries.push({
        id: entries.length + 1,
        hostId,
        hostname: hostnameOf(hostId),
        stream: 'stdout',
        sequence: at / bytesPerPiece,
        timestamp: '2026-11-21T03:25:15.000Z',
        data: isOdd ? `${data.slice(0, -20)}odd ${hostId}\n` : Buffer.from(data).toString(),
      })
    }
  return entries
}

/** Seconds that GroupedOutput takes until its last write. */
async function fold(entries: readonly LogEntry[]): Promise<{ seconds: number; groups: number }> {
  let groups = 0
  const sink = { write: (text: string) => void (groups += text.startsWith('-') ? 1 : 0) }
  const began = performance.now()
  const output = new GroupedOutput({
    stdout: sink,
    stderr: sink,
    hostCount,
    together: true,
    alone: false,
    prefix: true,
    raw: false,
    diff: false,
    notice: () => {},
  })
  for (const entry of entries) {
    const event: TaskEvent = { type: 'output', entry }
    await output.event(event)
  }
  await output.end({ results: [] as Task['results'] } as Task)
  return { seconds: (performance.now() - began) / 1000, groups }
}

/** The minimal way to find equal outputs: a SHA-256 per host, and a Map from it to the hosts. */
function foldBare(entries: readonly LogEntry[]): { seconds: number; groups: number } {
  const began = performance.now()
  const hashes = new Map<string, ReturnType<typeof createHash>>()
  for (const { hostname, data } of entries) {
    const hash = hashes.get(hostname) ?? createHash('sha256')
    hashes.set(hostname, hash.update(data))
  }
  const groups = new Map<string, string[]>()
  for (const [hostname, hash] of hashes) {
    const key = hash.digest('hex')
    groups.set(key, [...(groups.get(key) ?? []), hostname])
  }
  return { seconds: (performance.now() - began) / 1000, groups: groups.size }
}

/** Finding and showing equal outputs of a fleet vs hashing them. */
export async function benchFolding(): Promise<Row[]> {
  const ours: number[] = []
  const bare: number[] = []
  for (let round = 0; round < rounds; round++) {
    // New strings each time, so that cached hashes of one round do not help the next.
    const folded = await fold(pieces())
    const hashed = foldBare(pieces())
    if (folded.groups !== hashed.groups) throw new Error(`${folded.groups} groups, not ${hashed.groups}`)
    ours.push(folded.seconds)
    bare.push(hashed.seconds)
  }
  const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
  const seconds = median(ours)
  const baseline = median(bare)
  return [
    {
      name: `fold ${hostCount} outputs of 100 KB, vs SHA-256 and a Map`,
      ours: seconds,
      baseline,
      unit: 's',
      ratio: seconds / baseline,
      goal: `< ${goalSeconds} s`,
      met: seconds < goalSeconds,
    },
  ]
}
