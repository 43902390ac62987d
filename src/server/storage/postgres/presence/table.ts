import type { HostStatus } from '../../../../core/hosts/host.ts'
import type { Database } from '../connection/database.ts'
import { isLiving } from '../ownership/lives.ts'
import type { LinkSign, Signs } from './signs.ts'

/** Milliseconds until what another server published is in the tables: two flushes and a slow statement. */
export const writtenWithin = 15_000

/** Rows of one statement. */
const atOnce = 5_000

/** What outlives a server of a host. Times are milliseconds since 1970. */
export interface KeptHost {
  readonly hostId: number
  /** When that was so. */
  readonly at: number
  readonly status: HostStatus
  readonly reason: string | null
  readonly signs: Signs
}

/** Who was heard, and when at the latest. */
export interface HeardList {
  readonly at: number
  readonly ids: string
}

/** What a server has to write of some seconds. */
export interface Flush {
  readonly at: number
  readonly server: number
  readonly hosts: readonly Omit<KeptHost, 'at'>[]
  readonly gone: readonly number[]
  /** Texts of encodeIds. */
  readonly heard: readonly string[]
  readonly reports: readonly { hostId: number; at: number; metrics: string }[]
}

const flush = {
  name: 'presence.flush',
  text: `with gone as (delete from rsm.presence where host_id = any($1::bigint[])),
    gone_metrics as (delete from rsm.presence_metrics where host_id = any($1::bigint[])),
    heard as (
      insert into rsm.presence_heard (at, server_epoch, ids) select to_timestamp($2::float8 / 1000), $3, ids from unnest($4::text[]) ids),
    reports as (
      insert into rsm.presence_metrics as p (host_id, at, metrics)
      select host_id, to_timestamp(at / 1000), metrics from unnest($5::bigint[], $6::float8[], $7::text[]) u(host_id, at, metrics)
      order by host_id on conflict (host_id) do update set at = excluded.at, metrics = excluded.metrics where p.at <= excluded.at)
    insert into rsm.presence as p (host_id, at, status, reason, signs)
    select host_id, to_timestamp($2::float8 / 1000), status, reason, signs
    from unnest($8::bigint[], $9::text[], $10::text[], $11::text[]) u(host_id, status, reason, signs)
    order by host_id on conflict (host_id) do update set at = excluded.at, status = excluded.status,
      reason = excluded.reason, signs = excluded.signs where p.at <= excluded.at`,
}

export async function writeFlush(database: Database, all: Flush): Promise<void> {
  const { at, server } = all
  for (let from = 0; from === 0 || from < all.hosts.length; from += atOnce) {
    const hosts = all.hosts.slice(from, from + atOnce)
    const { gone, heard, reports } = from === 0 ? all : { gone: [], heard: [], reports: [] }
    await database.ask('write', flush, [
      gone,
      at,
      server,
      heard,
      reports.map(({ hostId }) => hostId),
      reports.map((report) => report.at),
      reports.map(({ metrics }) => metrics),
      hosts.map(({ hostId }) => hostId),
      hosts.map(({ status }) => status),
      hosts.map(({ reason }) => reason),
      hosts.map(({ signs }) => JSON.stringify(signs)),
    ])
  }
}

interface Row {
  host_id: number
  at: number
  status: HostStatus
  reason: string | null
  signs: string
}

const keptOf = ({ host_id, at, status, reason, signs }: Row): KeptHost => ({
  hostId: host_id,
  at,
  status,
  reason,
  signs: JSON.parse(signs) as Signs,
})

const hostsSince = {
  name: 'presence.hosts-since',
  text: `select host_id, (extract(epoch from at) * 1000)::float8 as at, status, reason, signs from rsm.presence
    where at >= to_timestamp($1::float8 / 1000) and host_id > $2 order by host_id limit ${atOnce}`,
}

/** What was written since then. */
export async function* readHosts(database: Database, since: number): AsyncGenerator<KeptHost[]> {
  let last = 0
  for (;;) {
    const rows = await database.ask<Row>('api', hostsSince, [since, last])
    yield rows.map(keptOf)
    if (rows.length < atOnce) return
    last = rows.at(-1)?.host_id ?? last
  }
}

const heardSince = {
  name: 'presence.heard-since',
  text: `select (extract(epoch from at) * 1000)::float8 as at, ids from rsm.presence_heard
    where at >= to_timestamp($1::float8 / 1000) order by at`,
}

export const readHeard = (database: Database, since: number): Promise<HeardList[]> =>
  database.ask<HeardList>('api', heardSince, [since])

export async function forgetHeard(database: Database, before: number): Promise<void> {
  await database.ask('write', 'delete from rsm.presence_heard where at < to_timestamp($1::float8 / 1000)', [
    before,
  ])
}

/** A row of rsm.links. */
export interface LinkRow {
  readonly hostId: number
  readonly epoch: number
  /** Epoch of the server that holds it; null once it is released. */
  readonly server: number | null
  readonly isReady: boolean
}

/** Rows without a known link count only while their link is open, because rows of deleted hosts stay. */
const otherLinks = {
  name: 'presence.links',
  text: `select l.host_id as "hostId", l.epoch, l.server_epoch as server, l.ready as "isReady"
    from rsm.links l left join unnest($1::bigint[], $2::bigint[], $3::bool[]) k(host_id, epoch, is_up) on k.host_id = l.host_id
    where (l.epoch, l.ready) is distinct from (k.epoch, k.is_up)
      and (k.host_id is not null or l.ready and ${isLiving('l', { epoch: 'server_epoch' })})`,
}

/** Rows that differ from the known links. */
export async function readLinks(
  database: Database,
  known: ReadonlyMap<number, LinkSign>,
): Promise<LinkRow[]> {
  const links = [...known.values()]
  return database.ask<LinkRow>('api', otherLinks, [
    [...known.keys()],
    links.map(({ epoch }) => epoch),
    links.map(({ isUp }) => isUp),
  ])
}

/** Start of the oldest living server, in milliseconds since 1970; null if none lives. */
export async function readListeningSince(database: Database): Promise<number | null> {
  const [row] = await database.ask<{ since: number | null }>(
    'api',
    `select (extract(epoch from min(joined_at)) * 1000)::float8 as since from rsm.servers where lease_until > (select rsm.now())`,
  )
  return row?.since ?? null
}

const metricsOf = {
  name: 'presence.metrics-of',
  text: `select host_id as "hostId", (extract(epoch from at) * 1000)::float8 as at, metrics
    from rsm.presence_metrics where host_id = any($1)`,
}

export const readReports = (
  database: Database,
  hostIds: readonly number[],
): Promise<{ hostId: number; at: number; metrics: string }[]> => database.ask('api', metricsOf, [hostIds])
