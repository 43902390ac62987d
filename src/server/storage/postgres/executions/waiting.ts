import type { Clock } from '../../../../disk/clock.ts'
import type { Database } from '../connection/database.ts'

/** If no more executions than this wait in the fleet, all of them are read. */
const few = 1000

/** Condition of executions that can be sent to their host. */
const waits = `status = 'PENDING' and due_at is not null and not over_ssh
  and task_id <> all (array(select task_id from rsm.held))`

const fewText = `select host_id from rsm.executions where ${waits} limit ${few + 1}`

const ofHostsText = `select h as host_id from unnest($1::bigint[]) as h where exists (
    select from rsm.executions where host_id = h and ${waits})`

/**
 * Finds hosts that have executions to take. Called each second for all linked hosts: usually few executions
 * wait, and reading those is faster than checking each host.
 */
export function createWaiting(
  database: Database,
  inDoubtOf: (hostIds: readonly number[]) => readonly number[],
): (hostIds: readonly number[]) => Promise<number[]> {
  interface Row {
    host_id: number
  }

  return async (hostIds) => {
    if (hostIds.length === 0) return []
    const all = await database.ask<Row>('write', { name: 'executions waiting', text: fewText })
    const asked = new Set(hostIds)
    const rows =
      all.length <= few
        ? all.filter(({ host_id }) => asked.has(host_id))
        : await database.ask<Row>('write', { name: 'executions waiting on', text: ofHostsText }, [hostIds])
    return [...new Set([...rows.map(({ host_id }) => host_id), ...inDoubtOf(hostIds)])]
  }
}

/** Milliseconds for which counts are cached. */
const keptFor = 1000
/** Maximum share of time spent on reading counts, which is slow if many hosts wait. */
const maxTimeShare = 1 / 20
/** Maximum age of counts in milliseconds, even if reading is slow: an agent asks every 30 s. */
const keptAtMost = 10_000

/** Returns one row, because 100,000 rows would take the server ten times as long to parse. */
const countsText = `select json_object_agg(host_id, waiting) as counts from (
    select host_id, count(*) as waiting from rsm.executions where ${waits} group by host_id) as hosts`

interface Counts {
  readonly byHost: Readonly<Record<number, number>>
  /** Monotonic milliseconds. */
  readonly until: number
}

/**
 * Counts executions that wait for a host. Heartbeats ask thousands of times a second, so counts of all hosts are read at once and
 * cached.
 */
export function createWaitingCounts(database: Database, clock: Clock): (hostId: number) => Promise<number> {
  let known: Counts = { byHost: {}, until: Number.NEGATIVE_INFINITY }
  let reading: Promise<void> | null = null

  async function read(): Promise<void> {
    const asked = clock.monotonic()
    try {
      const [row] = await database.ask<{ counts: Counts['byHost'] | null }>('api', {
        name: 'executions waiting counts',
        text: countsText,
      })
      const took = clock.monotonic() - asked
      const kept = Math.min(Math.max(took / maxTimeShare, keptFor), keptAtMost)
      known = { byHost: row?.counts ?? {}, until: asked + kept }
    } finally {
      reading = null
    }
  }

  return async (hostId) => {
    if (clock.monotonic() >= known.until) await (reading ??= read())
    return known.byHost[hostId] ?? 0
  }
}
