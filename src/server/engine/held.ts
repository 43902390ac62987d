import { RsmError } from '../../core/errors.ts'
import type { RestoreConfirmed } from '../../core/protocol/control.ts'
import type { RunMark } from '../../core/protocol/messages.ts'
import { isoTime } from '../clock.ts'
import type { ExecutionRecord, RestoreNote } from '../seams/records.ts'
import { isReceived, lose } from './lost.ts'
import { type EngineState, ended } from './state.ts'
import type { TaskRun } from './task-run.ts'

/** Unknown runs that are remembered of one restore; further ones only prove it again after the next start. */
const mostStrangers = 1000

export const lostByRestore =
  'this server was restored from a backup since it was sent, so whether the script ran can not be known'
const cancelledBy = 'not started: this server was restored from a backup, and what it held was cancelled'

/** Who says a mark. */
export interface Witness {
  readonly hostId: number
  readonly agentId: string
}

/** A restore that waits for a person, as people are told of it. */
export interface OpenRestore {
  noticedAt: string
  reason: string
  hostId: number
  agentId: string
  tasks: number
  /** Executions that are held. */
  executions: number
}

/**
 * A store that is older than what agents have heard of this server is a backup that was brought back: what is still to
 * start in it may have run since. From the proof on it is held until a person confirms; new tasks run (contract §11).
 */
export interface Held {
  readonly open: OpenRestore | null
  /** Whether a proof is on its way to the disk: until it is there no agent may be given a newer mark in its place. */
  readonly isUncertain: boolean
  /** Takes up what a former start held; before the tasks are. */
  load(): Promise<void>
  /** All tasks of former starts are taken up. */
  loaded(): void
  /** Whether the store has all that a mark speaks of; where it has not, the answer comes when what follows is on disk. */
  judge(witness: Witness, mark: RunMark | undefined): true | Promise<boolean>
  /** Whether an execution that was sent in a former start may be sent again to an agent that was judged so. */
  mayResend(run: TaskRun, isOurs: boolean): boolean
  /** Lets what is held start, or cancels it. Rejects with `conflict` where nothing is held. */
  confirm(cancelPending: boolean): Promise<RestoreConfirmed>
}

/** `released` hears of each task that may go on. */
export function createHeld(state: EngineState, released: (run: TaskRun) => void): Held {
  const former = new Set<string>()
  /** Unknown runs of restores that a person has confirmed in former starts. */
  const accepted = new Set<string>()
  /** The start that noticed the newest restore, and what it noted. */
  let noticedIn: string | null = null
  let note: RestoreNote | null = null
  /** Agents whose unknown run was taken in this start: an honest one has no other. */
  const witnesses = new Set<string>()
  let isUncertain = false
  let noticing: Promise<void> | null = null
  let writing: Promise<void> = Promise.resolve()

  const isOpen = () => note !== null && note.confirmedAt === null
  const heldRuns = () => [...state.held].flatMap((taskId) => state.runs.get(taskId) ?? [])
  const isPending = ({ status }: ExecutionRecord) => status === 'PENDING'

  /** One after the other: each changes what the one before has brought to the disk. `change` answers null to leave it. */
  function write(change: (now: RestoreNote | null) => RestoreNote | null): Promise<void> {
    const done = writing.then(async () => {
      const next = change(note)
      if (next === null) return
      const id = noticedIn ?? state.serverRuns.id
      await state.store.transact(async (tx) => {
        const run = await tx.get('runs', id)
        if (run) tx.put('runs', { ...run, restore: next })
      })
      noticedIn = id
      note = next
    })
    writing = done.catch(() => undefined)
    return done
  }

  async function notice({ hostId, agentId }: Witness, mark: RunMark): Promise<void> {
    // At once: nothing of it may be sent while the disk is at work.
    isUncertain = true
    witnesses.add(agentId)
    for (const taskId of former)
      if (state.runs.get(taskId)?.executions.some(isPending)) state.held.add(taskId)
    for (const lane of state.lanes.values())
      lane.waiting = lane.waiting.filter(({ run }) => !state.held.has(run.task.id))
    const hostname = (await state.store.get('hosts', hostId))?.hostname ?? `@id:${hostId}`
    const reason = `the agent of ${hostname} has heard of later work of this server than its data directory holds: the directory is a backup that was brought back`
    await write(() => ({
      noticedAt: isoTime(state.clock.now()),
      reason,
      hostId,
      agentId,
      taskIds: [...state.held],
      strangers: [mark.run],
      confirmedAt: null,
    }))
    isUncertain = false
    state.facts.publish('restored', { hostId, agentId, reason, tasks: state.held.size })
    for (const taskId of former) await loseUnreceived(state.runs.get(taskId))
  }

  /** What is sent again over a present link is on its way to the very process that it was sent to. */
  async function loseUnreceived(run: TaskRun | undefined): Promise<void> {
    for (const execution of run?.executions ?? []) {
      const isOnItsWay = state.lane(execution.hostId).named.has(execution.taskId)
      if (run && execution.status === 'RUNNING' && !isOnItsWay && !isReceived(state, run, execution))
        await lose(state, run, execution, lostByRestore)
    }
  }

  async function prove(witness: Witness, mark: RunMark): Promise<false> {
    if (accepted.has(mark.run)) return false
    // One restore a start: what comes after its confirmation tells of the same.
    if (note === null) {
      noticing ??= notice(witness, mark).finally(() => {
        noticing = null
      })
      await noticing
      return prove(witness, mark)
    }
    if (witnesses.has(witness.agentId)) return false
    witnesses.add(witness.agentId)
    await write((now) => {
      if (!now || now.strangers.includes(mark.run) || now.strangers.length >= mostStrangers) return null
      return { ...now, strangers: [...now.strangers, mark.run] }
    })
    return false
  }

  return {
    get open() {
      if (note === null || !isOpen()) return null
      const { noticedAt, reason, hostId, agentId } = note
      const runs = heldRuns()
      const executions = runs.reduce((sum, { counts }) => sum + counts.PENDING, 0)
      return { noticedAt, reason, hostId, agentId, tasks: runs.length, executions }
    },
    get isUncertain() {
      return isUncertain
    },

    async load() {
      for (const { id, restore } of (await state.store.query('runs')).items) {
        if (!restore) continue
        if (restore.confirmedAt !== null) for (const run of restore.strangers) accepted.add(run)
        else {
          noticedIn = id
          note = restore
          for (const taskId of restore.taskIds) state.held.add(taskId)
        }
      }
    },

    loaded() {
      for (const taskId of state.runs.keys()) former.add(taskId)
    },

    judge(witness, mark) {
      return mark === undefined || state.serverRuns.knows(mark) || prove(witness, mark)
    },

    mayResend: (run, isOurs) => !former.has(run.task.id) || (isOurs && !isOpen()),

    async confirm(cancelPending) {
      if (note === null || !isOpen())
        throw new RsmError('conflict', 'nothing is held: this server has noticed no restore from a backup')
      const { noticedAt, reason } = note
      const runs = heldRuns()
      const executions = runs.reduce((sum, { counts }) => sum + counts.PENDING, 0)
      if (cancelPending) for (const run of runs) await cancelHeld(state, run)
      await write((now) => now && { ...now, confirmedAt: isoTime(state.clock.now()) })
      state.held.clear()
      for (const run of runs) released(run)
      return { noticedAt, reason, tasks: runs.length, executions, cancelled: cancelPending }
    },
  }
}

/** What runs goes on: it is known to its agent. */
async function cancelHeld(state: EngineState, run: TaskRun): Promise<void> {
  const at = isoTime(state.clock.now())
  await state.change(
    run,
    run.executions.keys(),
    (current) => (current.status === 'PENDING' ? ended(current, 'CANCELLED', at, cancelledBy) : null),
    async (tx) => {
      const task = await tx.get('tasks', run.task.id)
      if (task) tx.put('tasks', { ...task, cancelRequestedAt: task.cancelRequestedAt ?? at })
    },
  )
  run.task = { ...run.task, cancelRequestedAt: run.task.cancelRequestedAt ?? at }
}
