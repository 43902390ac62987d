import { RsmError } from '../../core/errors.ts'
import type { RestoreConfirmed } from '../../core/protocol/control.ts'
import type { RunMark } from '../../core/protocol/messages.ts'
import { isoTime } from '../../disk/clock.ts'
import { isReceived } from '../storage/executions/transitions.ts'
import { restoreData } from '../storage/new-delivery.ts'
import type { RunningExecution } from '../storage/ports/executions.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { RestoreNote } from '../storage/records/run.ts'
import type { WebhookEvents } from '../webhooks/events.ts'
import type { HostStates } from './dispatcher/host-states.ts'
import type { EngineParts } from './parts.ts'

/** Unknown runs that are remembered of one restore; further ones only prove it again after the next start. */
const maxStrangers = 1000

export const lostByRestore =
  'this server was restored from a backup since it was sent, so whether the script ran cannot be known'
const cancelledBy = 'not started: this server was restored from a backup, and what it held was cancelled'

/** Who says a mark. */
export interface MarkSource {
  readonly hostId: number
  readonly agentId: string
}

/** A restore that waits for a person, as people are told of it. */
export interface OpenRestore {
  noticedAt: string
  reason: string
  hostId: number | null
  agentId: string | null
  tasks: number
  /** Executions that are held. */
  executions: number
}

/**
 * A store that is older than what agents have heard of this server is a backup that was brought back: what is still to
 * start in it may have run since. From the proof on it is held until a person confirms; new tasks run (contract §11).
 */
export interface RestoreHold {
  open(): Promise<OpenRestore | null>
  /** When the start began that noticed the open restore, ISO 8601: what is older came with the backup. Null: none is open. */
  openSince(): Promise<string | null>
  /** Whether a proof is on its way to the disk: until it is there no agent may be given a newer mark in its place. */
  readonly isUncertain: boolean
  /** Holds what a former start held; before the tasks are taken up. */
  load(): Promise<void>
  /** Gives up what was on its way to an agent in a backup that `rsm server restore` brought back; after the tasks are taken up. */
  settle(): Promise<void>
  /** Whether the store has all that a mark speaks of; where it has not, the answer comes when what follows is on disk. */
  judge(source: MarkSource, mark: RunMark | undefined): true | Promise<boolean>
  /** Whether an execution that was sent in a former start may be sent again to an agent that was judged so. */
  mayResend(taskId: string, isOurs: boolean): boolean
  /** Lets what is held start, or cancels it; `taskIds` may go on. Rejects with `conflict` where nothing is held. */
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
  /** Tasks of former starts. */
  const previousTasks = new Set<string>()
  /** Unknown runs of restores that a person has confirmed in former starts. */
  const accepted = new Set<string>()
  /** The start that noticed the newest restore, and what it noted. */
  let noticedIn: string | null = null
  let note: RestoreNote | null = null
  /** Agents whose unknown run was taken in this start: an honest one has no other. */
  const countedAgents = new Set<string>()
  let isUncertain = false
  let noticing: Promise<void> | null = null

  const isOpen = () => note !== null && note.confirmedAt === null

  async function countHeld(): Promise<{ taskIds: string[]; executions: number }> {
    const counts = await Promise.all([...executions.held].map((taskId) => executions.counts(taskId)))
    const taskIds = [...executions.held].filter((_, at) => counts[at] !== null)
    return { taskIds, executions: counts.reduce((sum, one) => sum + (one?.PENDING ?? 0), 0) }
  }

  /**
   * Changes the note of the restore that is open, whichever server has written it, or else of this one's own; `change`
   * answers null to leave it. A first note is told to webhooks.
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

  /** What another server has noticed, or confirmed, since. */
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
    // At once: nothing of it may be sent while the disk is at work.
    isUncertain = true
    countedAgents.add(agentId)
    await executions.hold(previousTasks)
    const hostname = (await store.get('hosts', hostId))?.hostname ?? `@id:${hostId}`
    const reason = `the agent of ${hostname} has heard of later work of this server than its store holds: that is a backup that was brought back, or it has lost what it had acknowledged`
    let isFirst = false
    await write((now) => {
      isFirst = now === null
      if (now !== null) return withStranger(now, mark)
      const noticedAt = isoTime(clock.now())
      const taskIds = [...executions.held]
      return { noticedAt, reason, hostId, agentId, taskIds, strangers: [mark.run], confirmedAt: null }
    })
    isUncertain = false
    // Another server may have noticed it first.
    if (isFirst) facts.publish('restored', { hostId, agentId, reason, tasks: executions.held.size })
    for (const taskId of previousTasks) await loseUnreceived(await executions.ofTask(taskId))
  }

  /** What is sent again over a present link is on its way to the very process that it was sent to. */
  async function loseUnreceived(all: readonly RunningExecution[]): Promise<void> {
    const isOnItsWay = ({ execution: { hostId, taskId } }: RunningExecution) =>
      states.get(hostId)?.named.has(taskId) === true
    const lost = all.filter(
      (running) => running.execution.status === 'RUNNING' && !isOnItsWay(running) && !isReceived(running),
    )
    const ends = lost.map(({ execution: { id } }) => ({ id, error: lostByRestore }))
    parts.ended(await executions.lose(member, ends))
  }

  async function prove(source: MarkSource, mark: RunMark): Promise<false> {
    if (accepted.has(mark.run)) return false
    // One restore a start: what comes after its confirmation tells of the same.
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

  /** Only a mark that this server has given can hold the work of all hosts; any other one decides about its own agent. */
  async function checkMac(source: MarkSource, mark: RunMark): Promise<false> {
    if (keys.isAuthentic(source.agentId, mark)) return prove(source, mark)
    // Agents of older versions have no other marks, and say nothing new of a restore that is known.
    if (note === null && !accepted.has(mark.run))
      facts.publish('unprovenMark', { ...source, hasMac: mark.mac !== undefined })
    return false
  }

  return {
    async open() {
      // Without the store what is known here has to do.
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
          await executions.hold(restore.taskIds)
        }
      }
    },

    async settle() {
      if (note === null || !isOpen() || note.agentId !== null) return
      log.error({ reason: note.reason }, 'restored from a backup: what was still to start in it is held')
      for (const taskId of note.taskIds) await loseUnreceived(await executions.ofTask(taskId))
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
        throw new RsmError('conflict', 'nothing is held: this server has noticed no restore from a backup')
      const { noticedAt, reason } = note
      const { taskIds, executions: count } = await countHeld()
      if (cancelPending)
        for (const taskId of taskIds)
          parts.ended(await executions.cancel(taskId, { pendingOnly: true, error: cancelledBy }))
      await write((now) => now && { ...now, confirmedAt: now.confirmedAt ?? isoTime(clock.now()) })
      await executions.release()
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
