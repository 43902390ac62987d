import type { Database } from '../connection/database.ts'

/** Executions that wait, of the whole fleet, up to which all of them are read. */
const few = 1000

/** Of an execution that its host can be sent. */
export const waits = `status = 'PENDING' and due_at is not null and not over_ssh
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
  doubtfulOf: (hostIds: readonly number[]) => readonly number[],
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
    return [...new Set([...rows.map(({ host_id }) => host_id), ...doubtfulOf(hostIds)])]
  }
}
