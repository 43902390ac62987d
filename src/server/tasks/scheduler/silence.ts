import { faultInBrackets, stoppedAgo, wasStopped } from '../../../core/hosts/host-status.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import { exactSpan } from '../../../core/text/duration.ts'
import { asLost, asUnreachable } from '../../storage/executions/transitions.ts'
import type { End } from '../../storage/ports/executions.ts'
import type { PresenceView } from '../../storage/ports/presence.ts'
import type { EngineParts } from '../parts.ts'
import type { OpenExecution, TaskRunner } from './task-runner.ts'

const sentAway =
  'its agent is not connected; the script may still be running, and is LOST if the agent does not return'
const waitsForPerson =
  'held: this server was restored from a backup, and it may have run since; `rsm server confirm-restore` on its machine releases it'

/** Watches executions of owned tasks whose hosts are disconnected, or linked without reporting an end. */
export function createSilence(parts: EngineParts, owned: ReadonlyMap<string, TaskRunner>) {
  const { executions, store, hints, member, clock } = parts

  /** Tells followers why a host is silent, minutes before its result does. */
  async function publishAway(task: TaskRunner, all: readonly OpenExecution[]): Promise<void> {
    const notes = await notesOf(parts, all, task.queueSeconds)
    const ids = new Set([...notes.keys(), ...task.notes.keys()])
    for (const id of ids)
      if (notes.get(id) !== task.notes.get(id)) {
        const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
        hints.publish('task', { id: task.id, hostId, change: 'updated' })
      }
    task.notes = notes
  }

  /** Executions to end as LOST: the host is disconnected for too long, or an end is overdue. */
  async function lostEnds({ id: taskId, notes, watches }: TaskRunner): Promise<End[]> {
    const now = clock.monotonic()
    const ends: End[] = []
    const add = (id: string, error: string | null | undefined) => {
      if (typeof error === 'string') ends.push({ id, error })
    }
    const due: number[] = []
    for (const [id, watch] of watches)
      if (notes.has(id)) add(id, watch.away(now))
      else if (watch.linked(now)) due.push(Number(id.slice(id.lastIndexOf('/') + 1)))
    const linked = due.length === 0 ? [] : await executions.page(taskId, { hostIds: due })
    for (const { execution, output } of linked)
      add(execution.id, watches.get(execution.id)?.hear(now, output.storedSequence))
    return ends
  }

  return {
    async sweep(): Promise<void> {
      for (const task of owned.values()) {
        const all = executions.held.has(task.id)
          ? (await executions.page(task.id)).map(({ execution }) => execution)
          : [...task.open.values()]
        if (all.length === 0 && task.notes.size === 0) continue
        await publishAway(task, all)
        // Ends cannot be stored while the store is read-only.
        if (store.readOnlyReason !== null) {
          for (const watch of task.watches.values()) watch.pause(clock.monotonic())
          continue
        }
        const ends = await lostEnds(task)
        if (ends.length > 0) parts.ended(await executions.transition(asLost({ owner: member }, ends)))
      }
    },
  }
}

/** Why hosts of a task are silent, by execution id: the `error` of its result until it ends. */
export async function notesOf(
  { executions, links, presence }: Pick<EngineParts, 'executions' | 'links' | 'presence'>,
  all: readonly OpenExecution[],
  queueSeconds: number | null,
): Promise<Map<string, string>> {
  const open = all.filter(({ status }) => !isFinal(status))
  const isHeld = ({ status, taskId }: OpenExecution) => status === 'PENDING' && executions.held.has(taskId)
  const due = open.filter((execution) => execution.dueAt !== null && !execution.overSsh && !isHeld(execution))
  const holders = await links.holders(due.map(({ hostId }) => hostId))
  const away = due.filter(({ hostId }) => !holders.has(hostId))
  const views = await presence.views(away.map(({ hostId }) => hostId))
  return new Map([
    ...open.filter(isHeld).map(({ id }) => [id, waitsForPerson] as const),
    ...away.map(
      ({ id, status }, at) =>
        [id, status === 'RUNNING' ? sentAway : waitsFor(views[at]?.says.linkFault, queueSeconds)] as const,
    ),
  ])
}

/** E.g. `its agent is stopped; waiting up to 15 s (--queue)`. */
function waitsFor(fault: string | null | undefined, queueSeconds: number | null): string {
  const why = wasStopped(fault)
    ? 'its agent is stopped'
    : `its agent is not connected${faultInBrackets(fault)}`
  const seconds = longestWait(queueSeconds, fault)
  return `${why}; waiting ${seconds === 0 ? 'for it' : `up to ${exactSpan(seconds)} (--queue)`}`
}

/** Seconds that a host with heartbeats but no link may take to connect (contract §4). */
const defaultQueueSeconds = 120
/** Seconds to wait for a host whose agent was stopped: a restart is faster than this (contract §4). */
const stoppedQueueSeconds = 15

/**
 * Every fourth sweep (about 1 s) looks up links of all waiting hosts; others judge only disconnected ones.
 */
const sweepsToFull = 4

/** Seconds that a task waits for a host that is not OFFLINE. */
const longestWait = (queueSeconds: number | null, fault: string | null | undefined): number =>
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
    parts.ended(await executions.transition(asUnreachable(member, ends)))
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
