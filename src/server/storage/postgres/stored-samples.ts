import { setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import type { Age } from '../../../disk/agreed-clock.ts'
import { isoTime } from '../../../disk/clock.ts'
import { keptFor } from '../ports/presence.ts'
import {
  type DiskRow,
  parseSample,
  type Sample,
  type SampleRow,
  sampleOf,
  type WaitingSample,
} from '../samples.ts'
import { type Ask, type Database, withBriefLocks } from './connection/database.ts'

const dayLength = 24 * 3600_000
/** Days to search for an expired one: twice as many as may have samples. */
const mostDays = 20

/** UTC day as `YYYY-MM-DD`. */
export const dayOf = (at: number): string => isoTime(at).slice(0, 10)

const appendStatement = { name: 'metrics_append', text: 'select rsm.metrics_append($1, $2, $3)' }
const daysStatement = {
  name: 'metrics_days',
  text: `select at / ${dayLength} as day from rsm.metrics_fresh where host_id = $1 and at between $2 and $3
    union select first / ${dayLength} from rsm.metrics_packed where host_id = $1 and last >= $2 and first <= $3`,
}
/** One statement, so that a sample packed meanwhile is found in exactly one table. */
const readStatement = {
  name: 'metrics_read',
  text: `select line, null::bytea as data from rsm.metrics_fresh where host_id = $1 and at between $2 and $3
    union all
    select null, data from rsm.metrics_packed where day = $4::date and host_id = $1 and last >= $2 and first <= $3`,
}

interface Stored {
  readonly line: string | null
  readonly data: Buffer | null
}

export async function appendSamples(database: Database, samples: readonly WaitingSample[]): Promise<void> {
  await database.ask('write', appendStatement, [
    samples.map(({ hostId }) => hostId),
    samples.map(({ at }) => at),
    samples.map(({ line }) => line).join('\n'),
  ])
}

/** Reads day by day, so that a host's history is never in memory as a whole. Both times are inclusive. */
export async function* readSamples(
  database: Database,
  hostId: number,
  from: number,
  to: number,
): AsyncGenerator<Sample> {
  const days = await database.ask<{ day: number }>('api', daysStatement, [hostId, from, to])
  for (const { day } of days) {
    const start = Math.max(from, day * dayLength)
    const end = Math.min(to, (day + 1) * dayLength - 1)
    for (const stored of await database.ask<Stored>('api', readStatement, [hostId, start, end, dayOf(start)]))
      for (const sample of await samplesOf(stored)) if (sample.at >= start && sample.at <= end) yield sample
  }
}

async function samplesOf({ line, data }: Stored): Promise<Sample[]> {
  const rows = data ? await unpackSamples(data) : [parseSample(line ?? '')]
  return rows.flatMap((row) => (row ? [sampleOf(row)] : []))
}

export async function removeHost(database: Database, hostId: number): Promise<void> {
  for (const table of ['metrics_fresh', 'metrics_packed'])
    await database.ask('write', `delete from rsm.${table} where host_id = $1`, [hostId])
}

/** Removes days that ended more than `keptFor` ago. */
export async function removeDays(database: Database, age: Age): Promise<void> {
  const partitions = await database.ask<{ name: string }>(
    'write',
    `select relname as name from pg_inherits join pg_class on oid = inhrelid where inhparent = 'rsm.metrics_packed'::regclass`,
  )
  for (const { name } of partitions)
    if (isOver(age, Date.parse(name.replace('metrics_', '').replaceAll('_', '-'))))
      await withBriefLocks(database, 'write', (ask) => ask(`drop table if exists rsm.${name}`))
  const end = endOfLastOver(age)
  if (end !== null) await database.ask('write', 'delete from rsm.metrics_fresh where at < $1', [end])
}

/** End of the newest expired day; null if none of the last `mostDays` is expired. */
function endOfLastOver(age: Age): number | null {
  const today = Math.floor(age(0) / dayLength)
  for (let day = today; day > today - mostDays; day--)
    if (isOver(age, day * dayLength)) return (day + 1) * dayLength
  return null
}

/** Whether a day is expired. A slow clock may have written samples at any time of its day. */
const isOver = (age: Age, start: number) => age(start, start + dayLength) >= keptFor

/** Advisory lock, unique in this database. */
const packingLock = 7_263_003
/** Hosts per transaction: some thousand samples. */
const hostsAtOnce = 50

interface PackedPiece {
  readonly day: string
  readonly hostId: number
  readonly first: number
  readonly last: number
  readonly data: Buffer
}

/** Packs past hours, unless another server does so. */
export async function packFinished(database: Database): Promise<void> {
  const text = `select rsm.metrics_slot() as present, array(
    select slot from generate_series(0, 3) as slots(slot)
    where exists (select from rsm.metrics_fresh f where f.slot = slots.slot)) as filled`
  const [found] = await database.ask<{ present: number; filled: number[] }>('write', text)
  for (const slot of found?.filled ?? []) if (slot !== found?.present) await packHour(database, slot)
}

async function packHour(database: Database, slot: number): Promise<void> {
  for (let after: number | undefined = -1; after !== undefined; ) {
    const behind: number = after
    after = await withBriefLocks(database, 'write', (ask) => packHosts(ask, slot, behind))
    // Yield to other work of this thread.
    await turn()
  }
  await withBriefLocks(database, 'write', (ask) => ask('select rsm.metrics_clear($1)', [slot]))
}

/** Returns the last packed host; undefined if there is none after `after`, or another server packs. */
async function packHosts(ask: Ask, slot: number, after: number): Promise<number | undefined> {
  const [lock] = await ask<{ ours: boolean }>('select pg_try_advisory_xact_lock($1) as ours', [packingLock])
  if (lock?.ours !== true) return undefined
  const taken = await ask<{ host_id: number; lines: string }>(
    'select host_id, lines from rsm.metrics_take($1, $2, $3)',
    [slot, after, hostsAtOnce],
  )
  const pieces = (await Promise.all(taken.map(({ host_id, lines }) => piecesOf(host_id, lines)))).flat()
  for (const day of new Set(pieces.map(({ day }) => day))) await ask('select rsm.metrics_day($1)', [day])
  await ask(
    `insert into rsm.metrics_packed(day, host_id, first, last, data)
     select * from unnest($1::date[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[])`,
    [
      pieces.map(({ day }) => day),
      pieces.map(({ hostId }) => hostId),
      pieces.map(({ first }) => first),
      pieces.map(({ last }) => last),
      pieces.map(({ data }) => data),
    ],
  )
  return taken.at(-1)?.host_id
}

const timeOf = ({ numbers }: SampleRow) => numbers[0] ?? 0

/** Packs one piece per UTC day; the samples are sorted by time. */
function piecesOf(hostId: number, lines: string): Promise<PackedPiece[]> {
  const days = new Map<string, SampleRow[]>()
  for (const row of lines.split('\n').map(parseSample)) {
    if (!row) continue
    const day = dayOf(timeOf(row))
    const rows = days.get(day)
    if (rows) rows.push(row)
    else days.set(day, [row])
  }
  const pieces = [...days].map(async ([day, rows]) => {
    const times = rows.map(timeOf)
    return { day, hostId, first: Math.min(...times), last: Math.max(...times), data: await packSamples(rows) }
  })
  return Promise.all(pieces)
}

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** Maximum decimals of numbers in samples, except those of foreign agents. */
const mostDecimals = 3
/** Limit up to which differences of integers are exact. */
const largestWhole = 2 ** 51

/**
 * One number of each sample: the count of decimals, the first number scaled to an integer, and the
 * differences. Without differences if all are equal. Numbers with more decimals follow -1 unchanged. Null if
 * the numbers derive from others.
 */
type Column = number[] | null

/** Consecutive samples with the same disks. */
type Run = [count: number, mountPoints: string[], ...columns: Column[]]

/** Indexes of numbers in a sample (storage/samples.ts). */
const [total, used, available, usage] = [5, 6, 7, 8]
/** Numbers that rsm agents compute from others. */
const derived = new Map<number, (numbers: readonly number[]) => number>([
  [available, (numbers) => (numbers[total] ?? 0) - (numbers[used] ?? 0)],
  [usage, (numbers) => Math.round(((numbers[used] ?? 0) / (numbers[total] ?? 1)) * 1000) / 10],
])

/** Packs samples of a host, sorted by time, in about 15 bytes each, because consecutive ones differ little. */
export function packSamples(rows: readonly SampleRow[]): Promise<Buffer> {
  return deflate(JSON.stringify(runsOf(rows).map(encodeRun)), { level: 9 })
}

export async function unpackSamples(packed: Uint8Array): Promise<SampleRow[]> {
  const runs = JSON.parse((await inflate(packed)).toString()) as Run[]
  return runs.flatMap(decodeRun)
}

const mountsOf = ({ disks }: SampleRow) => disks.map(([mountPoint]) => mountPoint)

function runsOf(rows: readonly SampleRow[]): SampleRow[][] {
  const runs: SampleRow[][] = []
  let last = ''
  for (const row of rows) {
    const mounts = JSON.stringify(mountsOf(row))
    if (mounts === last) runs.at(-1)?.push(row)
    else runs.push([row])
    last = mounts
  }
  return runs
}

const valuesOf = ({ numbers, disks }: SampleRow) => [
  ...numbers,
  ...disks.flatMap(([, ...figures]) => figures),
]

function encodeRun(rows: readonly SampleRow[]): Run {
  const [first] = rows
  if (!first) return [0, []]
  const values = rows.map(valuesOf)
  const columns = valuesOf(first).map((_, place): Column => {
    const derive = derived.get(place)
    if (derive && values.every((row) => Object.is(row[place], derive(row)))) return null
    return encodeColumn(values.map((row) => row[place] ?? 0))
  })
  return [rows.length, mountsOf(first), ...columns]
}

function encodeColumn(values: readonly number[]): number[] {
  for (let decimals = 0; decimals <= mostDecimals; decimals++) {
    const factor = 10 ** decimals
    const wholes = values.map((value) => Math.round(value * factor))
    const isExact = wholes.every(
      (whole, at) => whole / factor === values[at] && Math.abs(whole) <= largestWhole,
    )
    if (!isExact) continue
    const [first = 0, ...rest] = wholes
    const differences = rest.map((whole, at) => whole - (wholes[at] ?? 0))
    return [decimals, first, ...(differences.some((one) => one !== 0) ? differences : [])]
  }
  return [-1, ...values]
}

function decodeColumn([decimals = 0, ...coded]: readonly number[], count: number): number[] {
  if (decimals < 0) return coded
  const factor = 10 ** decimals
  let whole = 0
  return Array.from({ length: count }, (_, at) => {
    whole += coded[at] ?? 0
    return whole / factor
  })
}

function decodeRun([count, mountPoints, ...columns]: Run): SampleRow[] {
  const figures = mountPoints.length * 3
  const decoded = columns.map((column) => (column ? decodeColumn(column, count) : null))
  return Array.from({ length: count }, (_, at) => {
    const values = decoded.map((column) => column?.[at] ?? 0)
    for (const [place, derive] of derived) if (decoded[place] === null) values[place] = derive(values)
    const numbers = values.slice(0, values.length - figures)
    const disks = mountPoints.map((mountPoint, disk): DiskRow => {
      const [totalGB = 0, usedGB = 0, usagePercent = 0] = values.slice(numbers.length + disk * 3)
      return [mountPoint, totalGB, usedGB, usagePercent]
    })
    return { numbers, disks }
  })
}
