import type { Clock } from '../../../../disk/clock.ts'
import type { Database } from '../connection/database.ts'

/** Executions that wait, of the whole fleet, up to which all of them are read. */
const few = 1000

/** Condition of an execution that its host can be sent. */
const waits = `status = 'PENDING' and due_at is not null and not over_ssh
  and task_id <> all (array(select task_id from rsm.held))`

const fewText = `select host_id from rsm.executions where ${waits} limit ${few + 1}`

const ofHostsText = `select h as host_id from unnest($1::bigint[]) as h where exists (
    select from rsm.executions where host_id = h and ${waits})`

/**
 * Which of many hosts have something to take. Asked each second for all linked hosts: mostly next to nothing waits, and that
 * is read sooner than each host is looked at.
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
/** Where reading it takes long, as very many hosts wait, at most this part of the time is spent on that … */
const maxTimeShare = 1 / 20
/** … unless it would be older than this, milliseconds: an agent asks every 30 s. */
const keptAtMost = 10_000

/** One row: 100,000 of them would take the server ten times as long to read. */
const countsText = `select json_object_agg(host_id, waiting) as counts from (
    select host_id, count(*) as waiting from rsm.executions where ${waits} group by host_id) as hosts`

interface Counts {
  readonly byHost: Readonly<Record<number, number>>
  /** Monotonic milliseconds. */
  readonly until: number
}

/**
 * How many executions wait for a host, as heartbeats ask thousands of times a second: those of all hosts are read at once, when
 * the cached counts are too old.
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
