import type { Noun } from '../../records/records.ts'
import type { Ask, Database } from '../connection/database.ts'

/** Minutes for which changes are kept at least: a server that has not looked for longer has missed some. */
const keptFor = 10

/** How far a server has looked: what was committed by then. */
export interface Place {
  readonly snapshot: string
  readonly timeline: string
}

export interface Change {
  readonly noun: Noun
  readonly id: string
  readonly xid: string
}

interface Row extends Place {
  missed: boolean
  noun: Noun | null
  id: string | null
  xid: string | null
}

const timeline = 'substring(pg_walfile_name(pg_current_wal_lsn()) for 8)'

export async function placeNow(database: Database): Promise<Place> {
  const [row] = await database.ask<Place>(
    'api',
    `select pg_current_snapshot()::text as snapshot, ${timeline} as timeline`,
  )
  if (!row) throw new Error('a select without a table answers one row')
  return row
}

/**
 * Each transaction once, whatever the order of their commits: what is visible now and was not in the snapshot of the last look.
 * `missed`: some of it is gone, as it has been swept, or this PostgreSQL is one that was brought back or has taken over.
 */
const lookText = `with now as (select pg_current_snapshot() as snapshot, ${timeline} as timeline)
  select now.snapshot::text, now.timeline,
    $2 <> now.timeline or below > pg_snapshot_xmin($1::pg_snapshot)
      or pg_snapshot_xmax(now.snapshot) < pg_snapshot_xmax($1::pg_snapshot) as missed,
    changes.noun, changes.id, changes.xid::text
  from now cross join rsm.feed left join rsm.changes
    on changes.xid >= pg_snapshot_xmin($1::pg_snapshot) and not pg_visible_in_snapshot(changes.xid, $1::pg_snapshot)`

/** What was committed after `from`; null where some of that can't be told any more. */
export async function changesSince(
  database: Database,
  from: Place,
): Promise<{ place: Place; changes: Change[] | null }> {
  const rows = await database.ask<Row>('api', { name: 'store look', text: lookText }, [
    from.snapshot,
    from.timeline,
  ])
  const [place] = rows
  if (!place) throw new Error('rsm.feed has one row from the first migration on')
  const changes = rows.flatMap(({ noun, id, xid }) =>
    noun === null || id === null || xid === null ? [] : { noun, id, xid },
  )
  return { place, changes: place.missed ? null : changes }
}

const forgetText = `with now as (select pg_snapshot_xmax(pg_current_snapshot()) as xmax),
  restored as (
    update rsm.feed set below = '0', next = '0', swept_at = clock_timestamp() from now
    where next > now.xmax or exists (select from rsm.changes where xid >= now.xmax)
      or exists (select from rsm.executions where xid >= now.xmax) returning 1),
  gone as (delete from rsm.changes where exists (select from restored))
  update rsm.executions set xid = null where xid is not null and exists (select from restored)`

/** A dump that is restored into another PostgreSQL has numbers of transactions that are still to come there: they tell nothing. */
export async function forgetFormerNumbers(database: Database): Promise<void> {
  const work = async (ask: Ask) => {
    // Another server may sweep: what it has written is seen by the next statement.
    await ask('select from rsm.feed for update')
    await ask(forgetText)
  }
  await database.transaction('api', work, 'read committed')
}

/** Guarded by its time: of all servers one does it. What one sweep has marked the next one removes. */
const sweepText = `with old as (
    update rsm.feed set below = next, next = pg_snapshot_xmin(pg_current_snapshot()), swept_at = clock_timestamp()
    where swept_at <= clock_timestamp() - make_interval(mins => $1) returning below)
  delete from rsm.changes using old where xid < old.below`

/** Removes changes that are older than `minutes`, where no server has done so for that long. */
export async function sweepChanges(database: Database, minutes: number = keptFor): Promise<void> {
  await database.ask('api', { name: 'store sweep', text: sweepText }, [minutes])
}
