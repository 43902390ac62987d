import type { AgentHello } from '../../../core/protocol/messages.ts'
import { isLaterPhase, phases } from '../../../core/tasks/gates.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import { isReceived } from '../../storage/executions/transitions.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { End, Execution, RunningExecution } from '../../storage/ports/executions.ts'
import type { EngineParts } from '../parts.ts'
import { lostByRestore, type RestoreHold } from '../restore-hold.ts'
import type { Dispatch } from './dispatch.ts'
import { hasHost } from './frame-target.ts'
import type { HostState, HostStates } from './host-states.ts'

/** Tasks of a HELLO that are looked up at once. */
const atOnce = 500

const notTheSame =
  'its agent was restarted, copied or brought back from a backup since it was sent, so whether the script ran cannot be known'
const noStart = { noStart: true } as const
const journalLost = 'the agent lost its journal, so whether the script ran cannot be known'

/**
 * Whether a HELLO is of the very process that an execution was sent to, with all of its journal. Only such a one may be
 * sent it again: any other may be a copy of it, and both would run it. 0.1.0 does not tell (contract §4).
 */
function isSentTo(execution: Execution, state: HostState, hello: AgentHello): boolean {
  const { agentInstanceId = null, agentJournal } = execution
  const { instanceId = null, journal } = hello
  if (agentInstanceId !== instanceId) return false
  if (instanceId === null) return true
  const known = Math.max(agentJournal ?? 0, state.journal(instanceId))
  return journal !== undefined && journal.sequence >= known
}

/** Takes links up: what was sent over former ones is compared with what the agent says it has. */
export function createReconcile(
  parts: EngineParts,
  states: HostStates,
  dispatch: Dispatch,
  restoreHold: RestoreHold,
) {
  const { executions, links, store, clock } = parts

  /** Why what the agent does not name has to count as LOST; null: it is sent again. */
  function whyLost(
    running: RunningExecution,
    state: HostState,
    hello: AgentHello,
    isOurs: boolean,
  ): string | null {
    const { execution } = running
    if (execution.agentStoreId !== hello.storeId) return journalLost
    // This may be another agent, with a copy of the same journal.
    if (isReceived(running)) return 'the agent no longer knows of it'
    if (!restoreHold.mayResend(execution.taskId, isOurs)) return lostByRestore
    return isSentTo(execution, state, hello) ? null : notTheSame
  }

  async function reconcile(
    link: AgentLink,
    state: HostState,
    sent: RunningExecution[],
    isOurs: boolean,
  ): Promise<void> {
    const { hello, claim } = link
    if (!hello) return
    const says = new Map(hello.tasks.map(({ taskId, phase }) => [taskId, phase]))
    const named = sent.filter(({ execution }) => says.has(execution.taskId))
    const lost: End[] = []
    const again: Execution[] = []
    for (const running of sent) {
      const { execution } = running
      if (says.has(execution.taskId)) continue
      const error = whyLost(running, state, hello, isOurs)
      if (error === null) again.push(execution)
      else lost.push({ id: execution.id, error })
    }
    const news = named.filter(({ execution }) => !execution.named)
    if (news.length > 0)
      await executions.named(
        claim,
        news.map(({ execution }) => execution.id),
      )
    for (const running of named) {
      const phase = phases.find((each) => each === says.get(running.execution.taskId))
      // An earlier phase than the stored one comes from an older copy of the journal.
      const isBehind = phase !== undefined && isLaterPhase(running.execution.phase ?? 'SCRIPT', phase)
      resume(link, state, running, !isBehind && !links.refuses(link.hostId))
      if (phase !== undefined && !isBehind) await executions.reached(running.execution.id, phase)
    }
    if (lost.length > 0) parts.ended(await executions.lose(claim, lost))
    // The cancel goes first, so that the agent refuses what comes after it.
    for (const execution of again) if (execution.cancelRequested) cancel(link, state, execution)
    await dispatch.resend(link, again)
  }

  function cancel(link: AgentLink, state: HostState, { taskId }: Execution): void {
    state.cancelled.add(taskId)
    link.send('CANCEL_SCRIPT', { taskId })
  }

  /** The agent has it: tell it what is stored, so that it goes on from there; `mayStart` unless another agent has it too. */
  function resume(
    link: AgentLink,
    state: HostState,
    { execution, output }: RunningExecution,
    mayStart: boolean,
  ): void {
    state.named.add(execution.taskId)
    const { taskId } = execution
    link.send('SCRIPT_ACK', { taskId, sequence: output.storedSequence, ...(!mayStart && noStart) })
    if (execution.cancelRequested) cancel(link, state, execution)
  }

  /** Executions that the agent names and no running task has: the agent may forget them, or first send a late result. */
  async function others(link: AgentLink): Promise<void> {
    const named = link.hello?.tasks ?? []
    for (let from = 0; from < named.length && link.isOpen; from += atOnce) {
      const page = named.slice(from, from + atOnce)
      const tasks = await store.getMany(
        'tasks',
        page.map(({ taskId }) => taskId),
      )
      for (const [at, { taskId, state, lastSequence }] of page.entries()) {
        const task = tasks[at]
        const mayRun = task?.status === 'RUNNING' && hasHost(task, link.hostId)
        const running = mayRun ? await executions.find(taskId, link.hostId) : undefined
        if (running && !isFinal(running.execution.status)) continue
        if (state === 'QUEUED' || (task?.cancelRequestedAt && state !== 'EXITED'))
          link.send('CANCEL_SCRIPT', { taskId })
        if (!task && state === 'EXITED') link.send('SCRIPT_ACK', { taskId, complete: true })
        else link.send('SCRIPT_ACK', { taskId, sequence: lastSequence, ...noStart })
      }
    }
  }

  /** Answers what was sent over former links; null: this one has gone meanwhile, or a newer one come. */
  async function takeUp(
    link: AgentLink,
    state: HostState,
    ready: (() => void) | undefined,
  ): Promise<{ sent: RunningExecution[]; isOurs: boolean } | null> {
    const { claim, hello } = link
    await links.ready(claim)
    ready?.()
    // Before anything is sent over it.
    const judged = restoreHold.judge(link, hello?.mark)
    const isOurs = judged === true || (await judged)
    await state.sending
    const sent = await executions.takeOver(claim, new Set(state.unsent.keys()))
    if (state.epoch !== claim.epoch) return null
    state.link = link
    state.named = new Set()
    state.heard = new Map(sent.map(({ execution }) => [execution.taskId, clock.monotonic()]))
    state.cancelled = new Set()
    return { sent, isOurs }
  }

  return {
    /** A link is up and, for an agent of ours, has said HELLO. `ready`: the store knows that it takes work. */
    async linked(link: AgentLink, ready?: () => void): Promise<void> {
      const { hostId, claim, hello } = link
      const state = states.of(hostId)
      state.epoch = claim.epoch
      state.link = null
      const takingUp = takeUp(link, state, ready)
      state.takenUp = takingUp.catch(() => undefined)
      const taken = await takingUp
      if (taken === null) return
      await reconcile(link, state, taken.sent, taken.isOurs)
      if (hello?.instanceId !== undefined && hello.journal)
        state.noteJournal(hello.instanceId, hello.journal.sequence)
      await others(link)
      dispatch.wake(hostId)
    },

    unlinked(link: AgentLink): void {
      const state = states.get(link.hostId)
      if (state?.epoch !== link.claim.epoch) return
      state.epoch = null
      state.link = null
      state.named = new Set()
      state.heard = new Map()
    },
  }
}
