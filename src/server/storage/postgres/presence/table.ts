import type { Database } from '../connection/database.ts'
import { isLocked } from '../ownership/lives.ts'
import { type HostPatch, type Part, parts } from './host-patch.ts'

/** Rows per statement: more would block other requests. */
const atOnce = 1_000
/** Advisory lock, unique in this database. */
const writeLock = 7_263_007

interface Report {
  readonly hostId: number
  readonly at: number
  readonly metrics: string
}

/** One write of a server. Times are milliseconds since 1970. */
export interface Batch {
  /** Epoch of the server. */
  readonly server: number
  readonly patches: readonly { readonly hostId: number; readonly patch: Partial<HostPatch> }[]
  /** Hosts heard since `heardSince` without news, as texts of encodeIds. */
  readonly heard: readonly string[]
  readonly heardSince: number
  readonly reports: readonly Report[]
  readonly removed: readonly number[]
}

const list = parts.join(', ')
const newer = (part: Part, order: string) =>
  `${part} = case when p.${order} > excluded.${order} then p.${part} else coalesce(excluded.${part}, p.${part}) end`

/**
 * The lock makes turns ascend in the order of commits, so that a reader never misses a row behind its cursor. Each part of the
 * statement reads `next`, and so takes the lock before it locks rows: otherwise two servers could deadlock.
 */
const write = {
  name: 'presence.write',
  text: `with locked as materialized (select pg_advisory_xact_lock(${writeLock})),
    next as materialized (select nextval('rsm.presence_turns') as turn from locked),
    removed as (delete from rsm.presence using next where host_id = any($1::bigint[])),
    removed_metrics as (delete from rsm.presence_metrics using next where host_id = any($1::bigint[])),
    heard as (
      insert into rsm.presence_heard (turn, server_epoch, at, ids)
      select turn, $2::bigint, $3::bigint, ids from next, unnest($4::text[]) ids),
    reports as (
      insert into rsm.presence_metrics as p (host_id, at, metrics)
      select u.* from next, unnest($5::bigint[], $6::bigint[], $7::text[]) u(host_id, at, metrics)
      order by host_id on conflict (host_id) do update set at = excluded.at, metrics = excluded.metrics where p.at <= excluded.at)
    insert into rsm.presence as p (turn, host_id, heard_at, link_epoch, ${list})
    select turn, u.* from next, unnest($8::bigint[], $9::bigint[], $10::bigint[], ${parts.map((_, at) => `$${at + 11}::text[]`).join(', ')})
      u(host_id, heard_at, link_epoch, ${list})
    order by host_id on conflict (host_id) do update set turn = excluded.turn, ${newer('beat', 'heard_at')}, ${newer('link', 'link_epoch')},
      heard_at = greatest(p.heard_at, excluded.heard_at), link_epoch = greatest(p.link_epoch, excluded.link_epoch),
      ${(['load', 'marks', 'greeting', 'standing'] as const).map((part) => `${part} = coalesce(excluded.${part}, p.${part})`).join(', ')}`,
}

export async function writeBatch(database: Database, batch: Batch): Promise<void> {
  for (let from = 0; from === 0 || from < batch.patches.length; from += atOnce) {
    const patches = batch.patches.slice(from, from + atOnce)
    const { removed, heard, reports } = from === 0 ? batch : { removed: [], heard: [], reports: [] }
    await database.ask('write', write, [
      removed,
      batch.server,
      batch.heardSince,
      heard,
      reports.map(({ hostId }) => hostId),
      reports.map(({ at }) => at),
      reports.map(({ metrics }) => metrics),
      patches.map(({ hostId }) => hostId),
      patches.map(({ patch }) => patch.beat?.at),
      patches.map(({ patch }) => patch.link?.epoch),
      ...parts.map((part) => patches.map(({ patch }) => JSON.stringify(patch[part]))),
    ])
  }
}

export interface HostRow {
  readonly hostId: number
  readonly turn: number
  readonly patch: Partial<HostPatch>
}

type Row = { readonly host_id: number; readonly turn: number } & { readonly [P in Part]: string | null }

const rowsAfter = {
  name: 'presence.rows-after',
  text: `select host_id, turn, ${list} from rsm.presence where (turn, host_id) > ($1, $2) order by turn, host_id limit ${atOnce}`,
}

/** Reads rows written after a turn, the latest last. */
export async function* readRows(database: Database, after: number): AsyncGenerator<HostRow> {
  let last = { turn: after, host_id: Number.MAX_SAFE_INTEGER }
  for (;;) {
    const rows = await database.ask<Row>('api', rowsAfter, [last.turn, last.host_id])
    for (const row of rows) {
      const written = parts.flatMap((part) => (row[part] === null ? [] : [[part, JSON.parse(row[part])]]))
      yield { hostId: row.host_id, turn: row.turn, patch: Object.fromEntries(written) }
      last = row
    }
    if (rows.length < atOnce) return
  }
}

interface HeardList {
  readonly turn: number
  /** The server heard the hosts after this time. */
  readonly at: number
  readonly ids: string
}

const heardAfter = {
  name: 'presence.heard-after',
  text: 'select turn, at, ids from rsm.presence_heard where turn > $1 and server_epoch <> $2 order by turn',
}

/** Reads lists that other servers wrote after a turn. */
export const readHeard = (database: Database, after: number, server: number): Promise<HeardList[]> =>
  database.ask('api', heardAfter, [after, server])

export async function forgetHeard(database: Database, before: number): Promise<void> {
  await database.ask('write', 'delete from rsm.presence_heard where at < $1', [before])
}

/**
 * Start of the oldest live server, in milliseconds since 1970; null if none. Checks locks, because a killed
 * server keeps its lease.
 */
export async function readListeningSince(database: Database): Promise<number | null> {
  const [row] = await database.ask<{ since: number | null }>(
    'api',
    `select (extract(epoch from min(joined_at)) * 1000)::float8 as since from rsm.servers s
      where lease_until > (select rsm.now()) and ${isLocked('s')}`,
  )
  return row?.since ?? null
}

interface Link {
  readonly host_id: number
  readonly epoch: number
  /** Epoch of the server that has it. */
  readonly server: number
}

export const readLinks = (database: Database): Promise<Link[]> =>
  database.ask(
    'api',
    'select host_id, epoch, server_epoch as server from rsm.links where ready and server_epoch is not null',
  )

const metricsOf = {
  name: 'presence.metrics-of',
  text: 'select host_id as "hostId", at, metrics from rsm.presence_metrics where host_id = any($1)',
}

export const readReports = (database: Database, hostIds: readonly number[]): Promise<Report[]> =>
  database.ask('api', metricsOf, [hostIds])
