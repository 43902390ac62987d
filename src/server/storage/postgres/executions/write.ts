import { isFinal } from '../../../../core/tasks/task.ts'
import { jsonbSafe } from '../../jsonb-safe.ts'
import type { LinkClaim, Member } from '../../ports/cluster.ts'
import type { Execution } from '../../ports/executions.ts'
import { batched } from '../connection/batched.ts'
import type { Ask, Database } from '../connection/database.ts'
import { countText } from '../schema/running.ts'
import { idOf, type Stored } from './rows.ts'

/** Member or link on whose behalf a write happens: it fails once another one owns the task or the host. */
export type Fence = Member | LinkClaim | null

/** The next state of a record, and the conditions for writing it. */
export interface Change {
  readonly current: Stored
  readonly next: Execution
  readonly fence: Fence
  /** Required epoch; null for any. */
  readonly epoch: number | null
  /** New epoch; null to keep the current one. */
  readonly nextEpoch: number | null
  /** Required last sequence of stored output if `next` reports its size; otherwise null. */
  readonly lastSequence: number | null
  /** Skips the write if the task is held. */
  readonly unlessHeld: boolean
}

/** A durable change. */
export interface Written {
  readonly stored: Stored
  /** Whether the host has another execution to take. */
  readonly hasMore: boolean
}

const maxRows = 2000

type Kind = 'free' | 'owner' | 'link'

/** Writes records in batches. Resolves to null if the record changed since the decision, or is fenced or held. */
export function createWrite(database: Database): (change: Change) => Promise<Written | null> {
  async function writeAll(kind: Kind, changes: readonly Change[]): Promise<Map<Change, Written>> {
    const { now, later } = split(changes)
    // Lock in id order to avoid deadlocks.
    const input = now.sort(inOrder).map(inputOf)
    const rows = await database.ask<{ task_id: string; host_id: number; has_more: boolean }>(
      'write',
      { name: `executions write ${kind}`, text: textOf(kind) },
      [jsonbSafe(input)],
    )
    const more = new Map(rows.map(({ task_id, host_id, has_more }) => [idOf(task_id, host_id), has_more]))
    const written = later.length > 0 ? await writeAll(kind, later) : new Map<Change, Written>()
    for (const change of now) {
      const hasMore = more.get(change.next.id)
      if (hasMore !== undefined) written.set(change, writtenOf(change, hasMore))
    }
    return written
  }

  const writerOf = (kind: Kind) =>
    batched(async (changes: readonly Change[]) => {
      const written = await writeAll(kind, changes)
      return changes.map((change) => written.get(change) ?? null)
    }, maxRows)
  const writers = { free: writerOf('free'), owner: writerOf('owner'), link: writerOf('link') }
  return (change) => writers[kindOf(change.fence)](change)
}

const kindOf = (fence: Fence): Kind => (fence === null ? 'free' : 'hostId' in fence ? 'link' : 'owner')

/** Separates later changes of the same record, because one statement can change a row only once. */
function split(changes: readonly Change[]): { now: Change[]; later: Change[] } {
  const ids = new Set<string>()
  const now: Change[] = []
  const later: Change[] = []
  for (const change of changes) {
    const list = ids.has(change.next.id) ? later : now
    ids.add(change.next.id)
    list.push(change)
  }
  return { now, later }
}

const inOrder = (a: Change, b: Change) =>
  a.next.taskId === b.next.taskId ? a.next.hostId - b.next.hostId : a.next.taskId < b.next.taskId ? -1 : 1

function inputOf({ current, next, fence, epoch, nextEpoch, lastSequence, unlessHeld }: Change) {
  const { taskId, hostId } = next
  return {
    t: taskId,
    h: hostId,
    r: current.rev,
    e: epoch,
    n: nextEpoch,
    s: lastSequence,
    u: unlessHeld,
    z: isFinal(next.status),
    o: current.execution.status,
    p: patchOf(current.execution, next),
    w: fence !== null && 'name' in fence ? fence.name : null,
    f: fence?.epoch ?? null,
  }
}

function patchOf(current: Execution, next: Execution): Partial<Execution> {
  const fields = Object.entries(next) as [keyof Execution, unknown][]
  return Object.fromEntries(fields.filter(([field, value]) => current[field] !== value))
}

function writtenOf({ current, next, nextEpoch }: Change, hasMore: boolean): Written {
  const { rev, epoch, progress } = current
  return { stored: { execution: next, rev: rev + 1, epoch: nextEpoch ?? epoch, progress }, hasMore }
}

/** Locks the rows that prove ownership until the commit, so that a take-over happens before or after the write. */
const fences = {
  free: { locked: '', join: '' },
  owner: {
    locked: `, fence as materialized (
    select o.task_id, o.server, o.epoch from rsm.task_owners o join rsm.servers s on s.name = o.server and s.epoch = o.epoch
    where o.task_id in (select t from input) order by o.task_id for share of o)`,
    join: 'join fence on fence.task_id = i.t and fence.server = i.w and fence.epoch = i.f',
  },
  link: {
    locked: `, fence as materialized (
    select l.host_id, l.epoch from rsm.links l where l.server is not null and l.host_id in (select h from input) order by l.host_id for share)`,
    join: 'join fence on fence.host_id = i.h and fence.epoch = i.f',
  },
}

/** Changes each record whose `rev` is unchanged, so that the counts know its previous status. */
const textOf = (kind: Kind) => `with input as materialized (
    select * from jsonb_to_recordset($1::jsonb) as
      i(t text, h bigint, r bigint, e bigint, n bigint, s bigint, u bool, z bool, o text, p jsonb, w text, f bigint))${fences[kind].locked},
  changed as (update rsm.executions e
  set rec = e.rec || i.p, epoch = coalesce(i.n, e.epoch), rev = e.rev + 1, xid = pg_current_xact_id()
  from input i ${fences[kind].join}
  where e.task_id = i.t and e.host_id = i.h and e.rev = i.r
    and (i.e is null or e.epoch = i.e) and (i.s is null or e.out_seq = i.s)
    and not (i.u and e.task_id = any (array(select task_id from rsm.held)))
  returning e.task_id, e.host_id, i.z, i.o, e.status),
  counted as (${countText(`select task_id, m.status, m.count from changed
    cross join lateral (values (o, -1), (status, 1)) as m(status, count) where o <> changed.status`)})
  select task_id, host_id, case when z
    then host_id in (select * from rsm.hosts_waiting(array(select h from input where z))) else false end as has_more from changed`

/** Whether the member owns the task; if so, locks the ownership until the end of the transaction. */
export async function holdsTask(ask: Ask, { name, epoch }: Member, taskId: string): Promise<boolean> {
  const rows = await ask(
    {
      name: 'executions fence',
      text: `select 1 from rsm.task_owners o join rsm.servers s on s.name = o.server and s.epoch = o.epoch
        where o.task_id = $1 and o.server = $2 and o.epoch = $3 for share of o`,
    },
    [taskId, name, epoch],
  )
  return rows.length > 0
}
