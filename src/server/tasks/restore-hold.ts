import { RsmError } from '../../core/errors.ts'
import type { RestoreConfirmed } from '../../core/protocol/control.ts'
import type { RunMark } from '../../core/protocol/messages.ts'
import { isoTime } from '../../disk/clock.ts'
import { asLost, isReceived } from '../storage/executions/transitions.ts'
import { restoreData } from '../storage/new-delivery.ts'
import type { RunningExecution } from '../storage/ports/executions.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { RestoreNote } from '../storage/records/run.ts'
import type { WebhookEvents } from '../webhooks/events.ts'
import type { HostStates } from './dispatcher/host-states.ts'
import type { EngineParts } from './parts.ts'

/** Unknown runs stored per restore; further ones are only detected again after the next start. */
const maxStrangers = 1000

export const lostByRestore =
  'this server was restored from a backup after it was sent, so whether the script ran is unknown'
const cancelledBy = 'not started: cancelled after this server was restored from a backup'

export interface MarkSource {
  readonly hostId: number
  readonly agentId: string
}

/** A restore that awaits confirmation, as shown to people. */
export interface OpenRestore {
  noticedAt: string
  reason: string
  hostId: number | null
  agentId: string | null
  tasks: number
  executions: number
}

/**
 * Holds pending executions after a restore. A store older than the marks of its agents was restored from a
 * backup, so pending executions may have run since. They are held until a person confirms; new tasks run
 * (contract §11).
 */
export interface RestoreHold {
  open(): Promise<OpenRestore | null>
  /**
   * Start of the run that detected the open restore, ISO 8601: older records are the backup's. Null if none
   * is open.
   */
  openSince(): Promise<string | null>
  /** Whether a restore is being recorded: until it is durable, no agent may get a newer mark. */
  readonly isUncertain: boolean
  /** Holds again the tasks that an earlier run held; call before tasks are taken over. */
  load(): Promise<void>
  /** Ends executions in flight in a restored backup as LOST; call after tasks are taken over. */
  settle(): Promise<void>
  /** Whether the store contains everything a mark covers; if not, false once the consequences are durable. */
  judge(source: MarkSource, mark: RunMark | undefined): true | Promise<boolean>
  /** Whether an execution sent in an earlier run may be resent to an agent judged this way. */
  mayResend(taskId: string, isOurs: boolean): boolean
  /** Releases or cancels held executions; `taskIds` may continue. Throws `conflict` if nothing is held. */
  confirm(cancelPending: boolean): Promise<{ confirmed: RestoreConfirmed; taskIds: string[] }>
}

type RestoreHoldParts = Pick<
  EngineParts,
  'executions' | 'store' | 'serverRuns' | 'member' | 'clock' | 'facts' | 'log' | 'ended'
> & {
  readonly keys: Pick<Keys, 'isAuthentic'>
  readonly webhookEvents: Pick<WebhookEvents, 'write'>
}

export function createRestoreHold(parts: RestoreHoldParts, states: Pick<HostStates, 'get'>): RestoreHold {
  const { executions, store, serverRuns, keys, member, clock, facts, log } = parts
  const previousTasks = new Set<string>()
  /** Unknown runs of restores that were confirmed in earlier runs. */
  const accepted = new Set<string>()
  /** Run that detected the newest restore, and its note. */
  let noticedIn: string | null = null
  let note: RestoreNote | null = null
  /** Agents whose unknown run was counted in this run: an honest agent has only one. */
  const countedAgents = new Set<string>()
  let isUncertain = false
  let noticing: Promise<void> | null = null

  const isOpen = () => note !== null && note.confirmedAt === null

  async function countHeld(): Promise<{ taskIds: string[]; executions: number }> {
    const counts = await Promise.all(executions.held.ids().map((taskId) => executions.counts(taskId)))
    const taskIds = executions.held.ids().filter((_, at) => counts[at] !== null)
    return { taskIds, executions: counts.reduce((sum, one) => sum + (one?.PENDING ?? 0), 0) }
  }

  /**
   * Changes the note of the open restore, whichever server wrote it, or else of this server's own. Returning
   * null from `change` keeps the note. A first note also goes to webhooks.
   */
  async function write(change: (now: RestoreNote | null) => RestoreNote | null): Promise<void> {
    const own = noticedIn ?? serverRuns.id
    const written = await store.transact(async (tx) => {
      await tx.lock('restore')
      const { items } = await tx.query('runs')
      const run =
        items.find(({ restore }) => restore?.confirmedAt === null) ?? items.find(({ id }) => id === own)
      const now = run?.restore ?? null
      const next = change(now)
      if (run && next) tx.put('runs', { ...run, restore: next })
      if (run && next && now === null) parts.webhookEvents.write(tx, 'server.restore', restoreData(next))
      return { id: run?.id ?? own, note: next ?? now }
    })
    noticedIn = written.id
    note = written.note
  }

  /** Reads what another server detected or confirmed. */
  async function refresh(): Promise<void> {
    const { items } = await store.query('runs')
    const run =
      items.find(({ restore }) => restore?.confirmedAt === null) ?? items.find(({ id }) => id === noticedIn)
    if (!run?.restore) return
    noticedIn = run.id
    note = run.restore
  }

  function withStranger(now: RestoreNote, { run }: RunMark): RestoreNote | null {
    if (now.strangers.includes(run) || now.strangers.length >= maxStrangers) return null
    return { ...now, strangers: [...now.strangers, run] }
  }

  async function notice({ hostId, agentId }: MarkSource, mark: RunMark): Promise<void> {
    // Set before any await, so that nothing is sent meanwhile.
    isUncertain = true
    countedAgents.add(agentId)
    await executions.held.add(previousTasks)
    const hostname = (await store.get('hosts', hostId))?.hostname ?? `@id:${hostId}`
    const reason = `the agent of ${hostname} knows of later work of this server than its store holds: the store was restored from a backup, or it lost acknowledged data`
    let isFirst = false
    await write((now) => {
      isFirst = now === null
      if (now !== null) return withStranger(now, mark)
      const noticedAt = isoTime(clock.now())
      const taskIds = executions.held.ids()
      return { noticedAt, reason, hostId, agentId, taskIds, strangers: [mark.run], confirmedAt: null }
    })
    isUncertain = false
    // Another server may have detected it first.
    if (isFirst) facts.publish('restored', { hostId, agentId, reason, tasks: executions.held.ids().length })
    for (const taskId of previousTasks) await loseUnreceived(await executions.page(taskId))
  }

  /** Ends unreceived executions as LOST, except those in flight over the current link to the same process. */
  async function loseUnreceived(all: readonly RunningExecution[]): Promise<void> {
    const isOnItsWay = ({ execution: { hostId, taskId } }: RunningExecution) =>
      states.get(hostId)?.named.has(taskId) === true
    const lost = all.filter(
      (running) => running.execution.status === 'RUNNING' && !isOnItsWay(running) && !isReceived(running),
    )
    const ends = lost.map(({ execution: { id } }) => ({ id, error: lostByRestore }))
    parts.ended(await executions.transition(asLost({ owner: member }, ends)))
  }

  async function prove(source: MarkSource, mark: RunMark): Promise<false> {
    if (accepted.has(mark.run)) return false
    // One restore per run: later marks prove the same one.
    if (note === null) {
      noticing ??= notice(source, mark).finally(() => {
        noticing = null
      })
      await noticing
      return prove(source, mark)
    }
    if (countedAgents.has(source.agentId)) return false
    countedAgents.add(source.agentId)
    await write((now) => now && withStranger(now, mark))
    return false
  }

  /** Only an authentic mark can hold all tasks; any other affects its own agent only. */
  async function checkMac(source: MarkSource, mark: RunMark): Promise<false> {
    if (keys.isAuthentic(source.agentId, mark)) return prove(source, mark)
    // Agents of older versions have only marks without a MAC, which add nothing to a known restore.
    if (note === null && !accepted.has(mark.run))
      facts.publish('unprovenMark', { ...source, hasMac: mark.mac !== undefined })
    return false
  }

  return {
    async open() {
      // If the store is unreachable, use the cached note.
      await refresh().catch(() => undefined)
      if (note === null || !isOpen()) return null
      const { noticedAt, reason, hostId, agentId } = note
      const { taskIds, executions } = await countHeld()
      return { noticedAt, reason, hostId, agentId, tasks: taskIds.length, executions }
    },
    async openSince() {
      await refresh().catch(() => undefined)
      if (noticedIn === null || !isOpen()) return null
      return (await store.get('runs', noticedIn))?.startedAt ?? serverRuns.startedAt
    },
    get isUncertain() {
      return isUncertain
    },

    async load() {
      for (const taskId of await executions.running()) previousTasks.add(taskId)
      for (const { id, restore } of (await store.query('runs')).items) {
        if (!restore) continue
        if (restore.confirmedAt !== null) for (const run of restore.strangers) accepted.add(run)
        else {
          noticedIn = id
          note = restore
          await executions.held.add(restore.taskIds)
        }
      }
    },

    async settle() {
      if (note === null || !isOpen() || note.agentId !== null) return
      log.error({ reason: note.reason }, 'restored from a backup: pending executions are held')
      for (const taskId of note.taskIds) await loseUnreceived(await executions.page(taskId))
    },

    judge(source, mark) {
      if (mark === undefined) return true
      const known = serverRuns.knows(mark)
      if (typeof known === 'boolean') return known || checkMac(source, mark)
      return known.then((isKnown) => isKnown || checkMac(source, mark))
    },

    mayResend: (taskId, isOurs) => !previousTasks.has(taskId) || (isOurs && !isOpen()),

    async confirm(cancelPending) {
      await refresh()
      if (note === null || !isOpen())
        throw new RsmError(
          'conflict',
          'nothing is held: this server has not detected a restore from a backup',
        )
      const { noticedAt, reason } = note
      const { taskIds, executions: count } = await countHeld()
      if (cancelPending)
        for (const taskId of taskIds)
          parts.ended(await executions.cancel(taskId, { pendingOnly: true, error: cancelledBy }))
      await write((now) => now && { ...now, confirmedAt: now.confirmedAt ?? isoTime(clock.now()) })
      await executions.held.clear()
      const confirmed = {
        noticedAt,
        reason,
        tasks: taskIds.length,
        executions: count,
        cancelled: cancelPending,
      }
      return { confirmed, taskIds }
    },
  }
}
