import type { BoundedMap } from '../../../../core/bounded-map.ts'
import type { AgentStatus, HostStatus } from '../../../../core/hosts/host.ts'
import type { Measure } from '../../../../core/hosts/host-status.ts'
import type { BeatFacts } from '../../../../core/protocol/http/hosts.ts'
import type { JudgingOptions, KnownHosts } from '../../known-hosts.ts'
import type { Greeting } from '../../ports/presence.ts'
import type { Database } from '../connection/database.ts'
import { isLocked } from '../ownership/lives.ts'
import type { Neighbours } from '../ownership/ownership.ts'

/** State of the newest link of a host. */
export interface LinkState {
  /** Epoch of its claim. */
  readonly epoch: number
  /** Epoch of the server that has it. */
  readonly server: number
  readonly isUp: boolean
  readonly lostAt: number | null
  readonly fault: string | null
}

/** Changed parts of a host's state. Times are the store's, in milliseconds since 1970. */
export interface HostPatch {
  readonly beat: {
    readonly at: number | null
    readonly agentStatus: AgentStatus | null
    readonly uptime: number | null
    readonly says: Partial<BeatFacts>
    readonly clockOffset: number | null
  }
  readonly link: LinkState
  readonly load: {
    /** Time of the newest report; null without one. */
    readonly at: number | null
    readonly warns: readonly string[]
    readonly high: readonly Measure[]
    readonly highSince: Readonly<Record<string, number>>
  }
  readonly marks: { readonly duplicate: boolean; readonly revoked: boolean }
  readonly greeting: Greeting | null
  /** Last known status, for servers that start; a running one judges itself. */
  readonly standing: { readonly status: HostStatus; readonly reason: string | null }
}
export type Part = keyof HostPatch
export const parts = ['beat', 'link', 'load', 'marks', 'greeting', 'standing'] as const satisfies Part[]

/** The hosts of all servers, as one server knows them. */
export interface Fleet {
  readonly options: JudgingOptions
  readonly neighbours: Neighbours
  readonly hosts: KnownHosts
  readonly links: Map<number, LinkState>
  /** Hosts whose last heartbeat came to another server. */
  readonly remote: Set<number>
  /** Recently removed hosts: a server that lags may still write a row of one. Ids are never reused. */
  readonly removed: BoundedMap<number, true>
}

export function patchOf({ hosts, links, options }: Fleet, hostId: number, of: Iterable<Part>) {
  const known = hosts.entries.get(hostId)
  if (!known) return null
  const { lastHeartbeatAt: at, agentStatus, uptime, says, load, high, duplicate, revoked, status } = known
  const offset = options.clock.now() - options.clock.monotonic()
  const highSince = Object.entries(load.highSince).map(([name, since]) => [name, since + offset])
  const all: Partial<HostPatch> = {
    ...(agentStatus !== null && {
      beat: { at, agentStatus, uptime, says, clockOffset: known.clock.offsetSeconds() },
    }),
    ...(links.has(hostId) && { link: links.get(hostId) as LinkState }),
    load: { at: known.metricsAt, warns: load.warns, high, highSince: Object.fromEntries(highSince) },
    marks: { duplicate, revoked },
    greeting: known.greeting,
    standing: { status, reason: known.reason },
  }
  return Object.fromEntries([...of].map((part) => [part, all[part]])) as Partial<HostPatch>
}

/** Sets whether a host is connected: its link is up, at a live server. Returns whether that changed. */
export function updateConnected({ hosts, links, neighbours, options }: Fleet, hostId: number): boolean {
  const known = hosts.entries.get(hostId)
  const link = links.get(hostId)
  if (!known || !link) return false
  const { connected, linkLostAt } = known
  known.connected = link.isUp && (link.server === neighbours.own() || neighbours.others().has(link.server))
  // A dead server did not write when it lost the link.
  if (!known.connected && link.isUp) known.linkLostAt = connected ? options.clock.now() : linkLostAt
  else if (!known.connected) known.linkLostAt = link.lostAt
  return known.connected !== connected || known.linkLostAt !== linkLostAt
}

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
