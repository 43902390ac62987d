import { RsmError } from '../../../../core/errors.ts'
import { Mutex } from '../../../../core/mutex.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Id, Noun } from '../../records/records.ts'
import type { Ask, Database } from '../connection/database.ts'
import type { Sent } from './changes.ts'
import { isNumbered } from './tables.ts'

/** Milliseconds between two polls for changes of other servers. */
const pollInterval = 1000
/** Polls between two sweeps of changes: one minute. */
const pollsPerSweep = 60

type Changed = (id: Id | null) => void

/** Notifies watchers of changes by this and other servers. */
interface Feed {
  watch(noun: Noun, changed: Changed): void
  /** Reads changes of other servers now. */
  poll(): void
  /** Resolves when watchers know everything committed before the call. Errors: `unavailable`. */
  refresh(): Promise<void>
  /** A transaction of this server is about to commit; polls skip it, because `committed` notifies watchers. */
  expect(sent: Sent): void
  /** The transaction did not commit, as far as this server knows. */
  forget(sent: Sent): void
  committed(sent: Sent): void
  close(): Promise<void>
}

export async function openFeed(database: Database, log: Log): Promise<Feed> {
  const watchers = new Map<Noun, Changed[]>()
  /** Transactions of this server, which polls skip. */
  const own = new Set<string>()
  let place = await placeNow(database)
  let polls = 0
  let timer: NodeJS.Timeout | null = null
  let isClosed = false

  function notify(noun: Noun, id: Id | null): void {
    for (const changed of watchers.get(noun) ?? []) changed(id)
  }

  async function read(): Promise<void> {
    const found = await changesSince(database, place)
    place = found.place
    if (found.changes === null) {
      log.warn({ timeline: place.timeline }, 'changes of other servers were missed: reading everything again')
      for (const noun of watchers.keys()) notify(noun, null)
      own.clear()
      return
    }
    for (const { noun, id, xid } of found.changes)
      if (!own.has(xid)) notify(noun, isNumbered(noun) ? Number(id) : id)
    for (const { xid } of found.changes) own.delete(xid)
  }
  const reads = new Mutex()
  let next: Promise<void> | null = null
  /** Calls during a read share the next one, because the current one may miss their changes. */
  function refresh(): Promise<void> {
    next ??= reads.run(() => {
      next = null
      return read()
    })
    return next
  }

  async function pollAndSweep(): Promise<void> {
    await refresh()
    if (++polls % pollsPerSweep === 0) await sweepChanges(database)
  }

  const noteFault = (error: unknown) => log.debug({ err: error }, 'could not look for changes')

  function schedule(): void {
    if (!isClosed) timer = setTimeout(() => void pollAndSweep().catch(noteFault).then(schedule), pollInterval)
  }
  schedule()

  return {
    watch: (noun, changed) => void watchers.set(noun, [...(watchers.get(noun) ?? []), changed]),
    poll: () => void refresh().catch(noteFault),
    refresh: () =>
      isClosed ? Promise.reject(new RsmError('unavailable', 'the store is closed')) : refresh(),
    expect({ xid }) {
      if (xid !== null) own.add(xid)
    },
    forget({ xid }) {
      if (xid !== null) own.delete(xid)
    },
    committed({ changed }) {
      for (const { noun, id } of changed) notify(noun, id)
    },
    async close() {
      isClosed = true
      if (timer) clearTimeout(timer)
      await reads.idle()
    },
  }
}

/** Minimum retention of changes in minutes: a server that has not polled for longer missed some. */
const keptFor = 10

/** Position of a poll: the transactions committed by then. */
interface Place {
  readonly snapshot: string
  readonly timeline: string
}

interface Change {
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

async function placeNow(database: Database): Promise<Place> {
  const [row] = await database.ask<Place>(
    'api',
    `select pg_current_snapshot()::text as snapshot, ${timeline} as timeline`,
  )
  if (!row) throw new Error('a select without a table answers one row')
  return row
}

/**
 * Finds changes that are visible now but were not in the snapshot of the last poll. So each transaction is
 * found once, whatever the order of commits. `missed`: some changes were swept, or PostgreSQL was restored or
 * failed over.
 */
const pollText = `with now as (select pg_current_snapshot() as snapshot, ${timeline} as timeline)
  select now.snapshot::text, now.timeline,
    $2 <> now.timeline or below > pg_snapshot_xmin($1::pg_snapshot)
      or pg_snapshot_xmax(now.snapshot) < pg_snapshot_xmax($1::pg_snapshot) as missed,
    changes.noun, changes.id, changes.xid::text
  from now cross join rsm.feed left join rsm.changes
    on changes.xid >= pg_snapshot_xmin($1::pg_snapshot) and not pg_visible_in_snapshot(changes.xid, $1::pg_snapshot)`

/** Reads changes committed after `from`; `changes` is null if some were missed. */
async function changesSince(
  database: Database,
  from: Place,
): Promise<{ place: Place; changes: Change[] | null }> {
  const rows = await database.ask<Row>('api', { name: 'store look', text: pollText }, [
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

/** Clears transaction ids of a dump restored into another PostgreSQL, where they lie in the future. */
export async function forgetFutureXids(database: Database): Promise<void> {
  const work = async (ask: Ask) => {
    // Wait for another server that sweeps; the next statement then sees its changes.
    await ask('select from rsm.feed for update')
    await ask(forgetText)
  }
  await database.transaction('api', work, 'read committed')
}

/** `swept_at` ensures that one server sweeps. Each sweep removes what the previous one marked. */
const sweepText = `with old as (
    update rsm.feed set below = next, next = pg_snapshot_xmin(pg_current_snapshot()), swept_at = clock_timestamp()
    where swept_at <= clock_timestamp() - make_interval(mins => $1) returning below)
  delete from rsm.changes using old where xid < old.below`

/** Removes changes older than `minutes`, unless a server did so within that time. */
export async function sweepChanges(database: Database, minutes: number = keptFor): Promise<void> {
  await database.ask('api', { name: 'store sweep', text: sweepText }, [minutes])
}
