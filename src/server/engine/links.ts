import { faultPoint } from '#fault-point'
import { faultInBrackets } from '../../core/host-status.ts'
import type { AgentHello } from '../../core/protocol/messages.ts'
import { isFinal } from '../../core/task/task-state.ts'
import type { ExecutionRecord } from '../seams/records.ts'
import type { AgentLink } from './agent-link.ts'
import type { Dispatcher } from './dispatcher.ts'
import { type Held, lostByRestore } from './held.ts'
import { isReceived, lose } from './lost.ts'
import { type EngineState, type HostLane, heardJournal } from './state.ts'
import type { TaskRun } from './task-run.ts'

/** Beyond its timeout an execution may be silent for so long before it is LOST (contract §4) … */
const silence = 10 * 60_000
/** … or for so long when it has no timeout. */
const silenceWithoutTimeout = 24 * 3600_000

/**
 * An agent of ours sends all output before the end, so what is missing then comes at once or, like what a liar tells of,
 * never: so long a linked one may take from piece to piece.
 */
const missingOutput = 2 * 60_000

const sentAway =
  'its agent has no link just now; the script may go on there, and counts as LOST if no word of it comes'
const waitsFor = (fault: string | null | undefined) =>
  `agent not connected${faultInBrackets(fault)}; waiting for it, then UNREACHABLE`

const waitsForPerson =
  'held: this server was restored from a backup, and it may have run since; `rsm server confirm-restore` on its machine goes on'
const notTheSame =
  'its agent was restarted, copied or brought back from a backup since it was sent, so whether the script ran can not be known'

/**
 * Whether a HELLO is of the very process that an execution was sent to, with all of its journal. Only such a one may be
 * sent it again: any other may be a copy of it, and both would run it. 0.1.0 does not tell (contract §4).
 */
function isSentTo(execution: ExecutionRecord, lane: HostLane, hello: AgentHello): boolean {
  const { agentInstanceId = null, agentJournal } = execution
  const { instanceId = null, journal } = hello
  if (agentInstanceId !== instanceId) return false
  if (instanceId === null) return true
  const known = Math.max(agentJournal ?? 0, lane.journals.get(instanceId) ?? 0)
  return journal !== undefined && journal.sequence >= known
}

/** Reconciles what was sent with what agents say they have. */
export interface Links {
  /** A link is up and, for an agent of ours, has said HELLO. */
  linked(link: AgentLink): Promise<void>
  unlinked(link: AgentLink): void
  /** Ends as LOST what has been silent for too long, and as incomplete what waits in vain for output. */
  sweep(): Promise<void>
}

export function createLinks(state: EngineState, dispatcher: Dispatcher, held: Held): Links {
  /** Links that went while they were judged. */
  const gone = new WeakSet<AgentLink>()

  /** Executions that were sent to this host and have no end yet. */
  function sentTo(hostId: number): [TaskRun, ExecutionRecord][] {
    const found: [TaskRun, ExecutionRecord][] = []
    for (const run of state.runs.values()) {
      const execution = run.ofHost(hostId)
      if (execution?.status === 'RUNNING') found.push([run, execution])
    }
    return found
  }

  /** The agent has it: tell it what is stored, so that it goes on from there. */
  function goOn(link: AgentLink, lane: HostLane, run: TaskRun, execution: ExecutionRecord): void {
    const live = run.live(execution.position, state.clock.monotonic())
    live.lastWord = state.clock.monotonic()
    lane.named.add(run.task.id)
    link.send('SCRIPT_ACK', { taskId: run.task.id, sequence: live.storedSequence })
    if (execution.cancelRequested) link.send('CANCEL_SCRIPT', { taskId: run.task.id })
  }

  async function reconcile(
    { link, lane, isOurs }: { link: AgentLink; lane: HostLane; isOurs: boolean },
    run: TaskRun,
    execution: ExecutionRecord,
  ) {
    const { hello } = link
    if (!hello) return
    if (hello.tasks.some(({ taskId }) => taskId === run.task.id)) {
      if (!execution.named) {
        faultPoint('server.named.before')
        await state.change(run, [execution.position], (current) => ({ ...current, named: true }))
        faultPoint('server.named.after')
      }
      goOn(link, lane, run, execution)
    } else if (execution.agentStoreId !== hello.storeId) {
      await lose(
        state,
        run,
        execution,
        'the agent lost its journal, so whether the script ran can not be known',
      )
    } else if (isReceived(state, run, execution)) {
      // This may be another agent, with a copy of the same journal.
      await lose(state, run, execution, 'the agent no longer knows of it')
    } else if (!held.mayResend(run, isOurs)) {
      await lose(state, run, execution, lostByRestore)
    } else if (!isSentTo(execution, lane, hello)) {
      await lose(state, run, execution, notTheSame)
    } else if (execution.cancelRequested) {
      link.send('CANCEL_SCRIPT', { taskId: run.task.id })
      await dispatcher.resend(run, link)
    } else {
      await dispatcher.resend(run, link)
    }
  }

  /** What the agent names and no running task knows: it may let go of it, or send its late result first. */
  async function others(link: AgentLink): Promise<void> {
    for (const { taskId, state: held, lastSequence } of link.hello?.tasks ?? []) {
      const running = state.runs.get(taskId)?.ofHost(link.hostId)
      if (running && !isFinal(running.status)) continue
      const task = await state.store.get('tasks', taskId)
      const known = running !== undefined || task !== undefined
      if (task?.cancelRequestedAt && held !== 'EXITED') link.send('CANCEL_SCRIPT', { taskId })
      if (!known && held === 'EXITED') link.send('SCRIPT_ACK', { taskId, complete: true })
      else link.send('SCRIPT_ACK', { taskId, sequence: lastSequence })
    }
  }

  /** Whoever follows a task hears why a host is silent, before its result says so minutes later. */
  async function tellWhoIsAway(): Promise<void> {
    const isAway = ({ dueAt, hostId, status }: ExecutionRecord) =>
      !isFinal(status) && dueAt !== null && state.lane(hostId).link === null
    const executions = [...state.runs.values()].flatMap((run) => run.executions)
    const hostIds = [...new Set(executions.filter(isAway).map(({ hostId }) => hostId))]
    const views = await state.presence.views(hostIds)
    const faults = new Map(hostIds.map((hostId, at) => [hostId, views[at]?.linkFault]))
    for (const run of state.runs.values())
      for (const [position, execution] of run.executions.entries()) {
        if (isFinal(execution.status)) continue
        const waits = waitsFor(faults.get(execution.hostId))
        const isHeld = execution.status === 'PENDING' && state.held.has(run.task.id)
        const away = isAway(execution) ? (execution.status === 'RUNNING' ? sentAway : waits) : null
        const text = isHeld ? waitsForPerson : away
        if (run.note(position, text))
          state.hints.publish('task', { id: run.task.id, hostId: execution.hostId, change: 'updated' })
      }
  }

  return {
    async linked(link) {
      // Before anything is sent over it.
      const judged = held.judge(link, link.hello?.mark)
      const isOurs = judged === true || (await judged)
      if (gone.has(link)) return
      const lane = state.lane(link.hostId)
      lane.link = link
      lane.named = new Set()
      for (const [run, execution] of sentTo(link.hostId))
        await reconcile({ link, lane, isOurs }, run, execution)
      const { instanceId, journal } = link.hello ?? {}
      if (instanceId !== undefined && journal) heardJournal(lane, instanceId, journal.sequence)
      await others(link)
      if (lane.link === link) await dispatcher.pump(link.hostId)
    },

    unlinked(link) {
      gone.add(link)
      const lane = state.lane(link.hostId)
      if (lane.link !== link) return
      lane.link = null
      lane.named = new Set()
      dispatcher.unlinked(link.hostId)
    },

    async sweep() {
      await tellWhoIsAway()
      const now = state.clock.monotonic()
      for (const run of state.runs.values()) {
        const { timeout } = run.task
        const limit = timeout === 0 ? silenceWithoutTimeout : timeout * 1000 + silence
        for (const [position, execution] of run.executions.entries()) {
          if (execution.status !== 'RUNNING') continue
          const live = run.live(position, now)
          const lane = state.lane(execution.hostId)
          const { early } = live
          if (early && early.link === lane.link && live.pending.size === 0 && now - early.at > missingOutput)
            early.giveUp()
          // A linked agent of ours that has named it says that it still runs.
          if (lane.link?.hello && lane.named.has(run.task.id)) live.lastWord = now
          else if (now - live.lastWord > limit)
            await lose(
              state,
              run,
              execution,
              `no word of it for ${Math.round((now - live.lastWord) / 1000)} s`,
            )
        }
      }
    },
  }
}
