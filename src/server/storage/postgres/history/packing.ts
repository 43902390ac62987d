import { setImmediate as turn } from 'node:timers/promises'
import { parseSample, type SampleRow } from '../../samples/sample-line.ts'
import { withBriefLocks } from '../connection/brief-locks.ts'
import type { Ask, Database } from '../connection/database.ts'
import { packSamples } from './pack.ts'
import { dayOf } from './stored.ts'

/** Any number that nothing else in this database locks. */
const packingLock = 7_263_003
/** Hosts of one transaction: some thousand samples. */
const hostsAtOnce = 50

interface Piece {
  readonly day: string
  readonly hostId: number
  readonly first: number
  readonly last: number
  readonly data: Buffer
}

/** Packs the hours that are over, as far as no other server does so. */
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
    // Whoever else waits for this thread comes first.
    await turn()
  }
  await withBriefLocks(database, 'write', (ask) => ask('select rsm.metrics_clear($1)', [slot]))
}

/** Answers the last of the hosts; undefined where there is none behind `after`, or where another server packs. */
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

/** One for each UTC day of the samples, which come in the order of their times. */
function piecesOf(hostId: number, lines: string): Promise<Piece[]> {
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
