import { faultInBrackets, stoppedAgo, wasStopped } from '../../../core/hosts/host-status.ts'
import type { PresenceView } from '../../storage/ports/presence.ts'
import type { EngineParts } from '../parts.ts'
import type { OpenExecution, TaskRunner } from './task-runner.ts'

/** Seconds that a host with heartbeats but no link may take to connect (contract §4). */
const defaultQueueSeconds = 120
/** Seconds to wait for a host whose agent was stopped: a restart is faster than this (contract §4). */
const stoppedQueueSeconds = 15

/**
 * Every fourth sweep (about 1 s) looks up links of all waiting hosts; others judge only disconnected ones.
 */
const sweepsToFull = 4

/** Seconds that a task waits for a host that is not OFFLINE. */
export const longestWait = (queueSeconds: number | null, fault: string | null | undefined): number =>
  queueSeconds ?? (wasStopped(fault) ? stoppedQueueSeconds : defaultQueueSeconds)

/** Milliseconds. */
function limitOf({ queueSeconds }: TaskRunner, view: PresenceView | undefined): number {
  if (queueSeconds === null && (!view || view.status === 'OFFLINE')) return 0
  return longestWait(queueSeconds, view?.says.linkFault) * 1000
}

/** Gives up due executions whose hosts had no link to any server for longer than the task waits. */
export function createUnreachable(
  parts: EngineParts,
  owned: ReadonlyMap<string, TaskRunner>,
  returnGrace: number,
) {
  const { executions, links, presence, store, member, clock } = parts
  /** Monotonic milliseconds until which agents of this server's previous process reconnect, one by one. */
  const returnsUntil = clock.monotonic() + returnGrace
  let sweeps = 0
  /** Whether a link lookup failed: agents may have been refused meanwhile. */
  let wasCutOff = false

  async function viewsOf(waiting: readonly OpenExecution[]): Promise<Map<number, PresenceView>> {
    const hostIds = [...new Set(waiting.map(({ hostId }) => hostId))]
    const views = await presence.views(hostIds)
    return new Map(hostIds.flatMap((hostId, at) => (views[at] ? [[hostId, views[at]] as const] : [])))
  }

  /** Whether an agent unknown to this restarted server may be reconnecting (P34). */
  async function mayReturn(hostId: number, view: PresenceView | undefined): Promise<boolean> {
    if (clock.monotonic() >= returnsUntil || view?.lastHeartbeatAt != null) return false
    const host = await store.get('hosts', hostId)
    return host?.agent != null && host.agent.tokenHash !== null
  }

  function lastHeard(at: string | null | undefined): string {
    if (at == null) return 'has never been heard'
    return `was last heard ${Math.max(0, Math.round((clock.now() - Date.parse(at)) / 1000))} s ago`
  }

  /** Why the host cannot be reached; the reason of a WARNING does not explain that. */
  function whyAway({ hostname }: OpenExecution, view: PresenceView | undefined): string {
    const offline = view?.status === 'OFFLINE' ? view.statusReason : null
    if (offline) return `${hostname} is OFFLINE: ${offline}`
    const fault = view?.says.linkFault
    if (wasStopped(fault) && view?.linkLostAt)
      return `${hostname} is not linked: ${stoppedAgo((clock.now() - Date.parse(view.linkLostAt)) / 1000)}`
    return `${hostname} is not linked${faultInBrackets(fault)}, and ${lastHeard(view?.lastHeartbeatAt)}`
  }

  /** Executions whose host has no link; records since when. */
  async function awayOf(waiting: readonly OpenExecution[]): Promise<OpenExecution[]> {
    const hostIds = [...new Set(waiting.map(({ hostId }) => hostId))]
    const linked = await links.holders(hostIds).catch((error: unknown) => {
      wasCutOff = true
      throw error
    })
    const now = clock.monotonic()
    if (wasCutOff) for (const { awaySince } of owned.values()) awaySince.clear()
    wasCutOff = false
    return waiting.filter(({ id, taskId, hostId }) => {
      const since = owned.get(taskId)?.awaySince
      if (linked.has(hostId)) since?.delete(id)
      else if (since?.has(id) === false) since.set(id, now)
      return !linked.has(hostId)
    })
  }

  function isOverdue({ id, taskId }: OpenExecution, view: PresenceView | undefined): boolean {
    const task = owned.get(taskId)
    const now = clock.monotonic()
    return (
      task !== undefined &&
      now >= task.graceUntil &&
      now - (task.awaySince.get(id) ?? now) >= limitOf(task, view)
    )
  }

  const mayWait = ({ status, taskId }: OpenExecution) =>
    status === 'PENDING' && owned.has(taskId) && !executions.held.has(taskId)

  async function judge(away: readonly OpenExecution[]): Promise<void> {
    if (away.length === 0) return
    const views = await viewsOf(away)
    const overdue: OpenExecution[] = []
    for (const execution of away) {
      const view = views.get(execution.hostId)
      if (isOverdue(execution, view) && !(await mayReturn(execution.hostId, view))) overdue.push(execution)
    }
    if (overdue.length === 0 || parts.isStopping()) return
    // Check again: a link, or the store, may be back.
    const stillOverdue = (await awayOf(overdue)).filter((one) => isOverdue(one, views.get(one.hostId)))
    // All hosts in one step, so that one fsync makes their ends durable.
    const ends = stillOverdue.map((execution) => ({
      id: execution.id,
      error: whyAway(execution, views.get(execution.hostId)),
    }))
    parts.ended(await executions.unreachable(member, ends))
  }

  async function poll(due: readonly OpenExecution[]): Promise<void> {
    const waiting = due.filter(mayWait)
    if (waiting.length > 0) await judge(await awayOf(waiting))
  }

  return {
    /** Gives up at once those due executions that may not wait. */
    poll,
    async sweep() {
      if (store.readOnlyReason !== null) return
      sweeps++
      const all = [...owned.values()].flatMap((task) => task.waiting())
      if (sweeps % sweepsToFull === 0) return poll(all)
      await judge(all.filter((one) => mayWait(one) && owned.get(one.taskId)?.awaySince.has(one.id) === true))
    },
  }
}
