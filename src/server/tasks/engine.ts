import type { RestoreConfirmed } from '../../core/protocol/control.ts'
import type { RunMark } from '../../core/protocol/messages.ts'
import { asRemoved, asRevoked } from '../storage/executions/transitions.ts'
import type { Executions } from '../storage/ports/executions.ts'
import { createDispatcher, type Dispatcher } from './dispatcher/dispatcher.ts'
import { HostStates } from './dispatcher/host-states.ts'
import { createInstalls } from './installs.ts'
import { createParts, type EngineDependencies } from './parts.ts'
import { createReads, type Reads } from './reads.ts'
import { createRestoreHold, type MarkSource, type OpenRestore, type RestoreHold } from './restore-hold.ts'
import { createScheduler, type Scheduler } from './scheduler/scheduler.ts'

/** Milliseconds. */
const waitingSweep = 250
const lostHintSweep = 1000
const silenceSweep = 5000

/**
 * The running tasks of this server: the scheduler carries out the plans of tasks it owns, the dispatcher
 * serves hosts linked here. They share only Executions, Links and Hints, because a task's host may be linked
 * to another server.
 */
export interface Engine
  extends Pick<Scheduler, 'create'>,
    Pick<Dispatcher, 'linked' | 'unlinked' | 'received' | 'phase' | 'output' | 'complete'>,
    Reads {
  /** Takes over running tasks that no living server owns. */
  recover(): Promise<void>
  /** Cancels a task; resolves when the cancel is durable. A disconnected agent receives it when it reconnects. */
  cancel(taskId: string): Promise<void>
  /** Ends every execution of a removed host, or the RUNNING ones of a host whose agent was revoked. */
  abandonHost(hostId: number, parting: 'removed' | 'revoked'): Promise<void>
  transactWithOpen: Executions['transactWithOpen']
  /** Mark of this server's progress for an agent; null while a possible restore is being recorded. */
  markFor(agentId: string): RunMark | null
  /** Judges a mark that an agent reports outside of a HELLO. */
  judgeMark(source: MarkSource, mark: RunMark): void
  /** The restore from a backup that awaits confirmation. */
  restore(): Promise<OpenRestore | null>
  openSince: RestoreHold['openSince']
  /** Releases or cancels held executions. Rejects with `conflict` if nothing is held. */
  confirmRestore(cancelPending: boolean): Promise<RestoreConfirmed>
  /** Takes no further step; resolves when steps in progress end. */
  stop(): Promise<void>
}

export function createEngine(deps: EngineDependencies): Engine {
  const parts = createParts(deps)
  const hostStates = new HostStates()
  const restoreHold = createRestoreHold(parts, hostStates)
  const dispatcher = createDispatcher(parts, hostStates, restoreHold)
  const installs = createInstalls(parts)
  const scheduler = createScheduler(parts, installs)
  const reads = createReads(parts)

  /** Skips a run while the previous one is in progress, so that runs do not pile up on a hung disk. */
  const every = (milliseconds: number, sweep: () => Promise<unknown>, what: string) => {
    let isUnderWay = false
    const run = () => {
      if (isUnderWay) return
      isUnderWay = true
      const running = sweep().finally(() => {
        isUnderWay = false
      })
      parts.inBackground(running, what)
    }
    return setInterval(run, milliseconds).unref()
  }
  const timers = [
    every(waitingSweep, () => scheduler.sweep(), 'the sweep of waiting executions'),
    every(
      lostHintSweep,
      () => Promise.all([scheduler.sweepTasks(), dispatcher.sweep()]),
      'the sweep of tasks',
    ),
    every(
      silenceSweep,
      () => Promise.all([dispatcher.sweepRunning(), scheduler.sweepSilent()]),
      'the sweep of silent executions',
    ),
  ]

  return {
    ...reads,
    ...dispatcher,
    create: (task, executions, also) => scheduler.create(task, executions, also),
    async recover() {
      await restoreHold.load()
      await scheduler.takeOver()
      await restoreHold.settle()
    },
    async cancel(taskId) {
      parts.ended(await parts.executions.cancel(taskId))
    },
    transactWithOpen: (hostId, work) => parts.executions.transactWithOpen(hostId, work),
    async abandonHost(hostId, parting) {
      const end = parting === 'removed' ? asRemoved : asRevoked
      parts.ended(await parts.executions.transition(end(hostId)))
    },
    markFor(agentId) {
      const mark = restoreHold.isUncertain ? null : parts.serverRuns.recent()
      return mark && parts.keys.authenticated(agentId, mark)
    },
    judgeMark(source, mark) {
      const judged = restoreHold.judge(source, mark)
      if (judged !== true) parts.inBackground(judged, 'judging the mark of an agent')
    },
    restore: () => restoreHold.open(),
    openSince: () => restoreHold.openSince(),
    async confirmRestore(cancelPending) {
      const { confirmed, taskIds } = await restoreHold.confirm(cancelPending)
      scheduler.resume(taskIds)
      return confirmed
    },
    async stop() {
      for (const timer of timers) clearInterval(timer)
      dispatcher.close()
      scheduler.close()
      installs.close()
      reads.stop()
      await parts.stop()
    },
  }
}
