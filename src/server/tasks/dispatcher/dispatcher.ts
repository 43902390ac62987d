import type { AgentHello } from '../../../core/protocol/messages.ts'
import { isLaterPhase, phases } from '../../../core/tasks/gates.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import { asLost, asNamed, isReceived } from '../../storage/executions/transitions.ts'
import type { AgentLink } from '../../storage/ports/cluster.ts'
import type { End, Execution, RunningExecution } from '../../storage/ports/executions.ts'
import type { EngineParts } from '../parts.ts'
import { lostByRestore, type RestoreHold } from '../restore-hold.ts'
import { createDispatch, type Dispatch } from './dispatch.ts'
import { createSilent } from './ends.ts'
import type { HostState, HostStates } from './host-states.ts'
import { createReceiver, hasHost, type Receiver } from './receive.ts'

/** Serves the hosts linked here. It knows no plans, because a task may belong to another server. */
export interface Dispatcher extends Pick<Receiver, 'received' | 'phase' | 'output' | 'complete'> {
  /** `ready` is called once the store knows that the link accepts work. */
  linked(link: AgentLink, ready?: () => void): Promise<void>
  unlinked(link: AgentLink): void
  /** Catches up on lost hints and on work that a full disk delayed. */
  sweep(): Promise<void>
  /**
   * Resends cancels. Ends as LOST executions that linked agents do not report, and as incomplete those whose
   * output never arrives.
   */
  sweepRunning(): Promise<void>
  close(): void
}

export function createDispatcher(
  parts: EngineParts,
  states: HostStates,
  restoreHold: RestoreHold,
): Dispatcher {
  const { executions, hints, store } = parts
  const dispatch = createDispatch(parts, states)
  const receiver = createReceiver(parts, states)
  const silent = createSilent(parts, states)

  async function forgetDeletedHosts(): Promise<void> {
    const idle = [...states].flatMap(([hostId, { epoch, unsent }]) =>
      epoch === null && unsent.size === 0 ? [hostId] : [],
    )
    const hosts = await store.getMany('hosts', idle)
    for (const [at, hostId] of idle.entries())
      if (hosts[at] === undefined && states.get(hostId)?.epoch === null) states.delete(hostId)
  }

  /** Resends cancels; cancels and forgets executions that ended without a report of the agent (LOST). */
  async function checkSent(hostId: number, state: HostState): Promise<void> {
    for (const taskId of new Set([...state.named, ...state.heard.keys()])) {
      const { execution } = (await executions.find(taskId, hostId)) ?? {}
      if (execution?.status !== 'RUNNING') {
        // An execution in the agent's queue must not start after its result is final.
        state.link?.send('CANCEL_SCRIPT', { taskId })
        state.forget(taskId)
      } else if (execution.cancelRequested) dispatch.wake(hostId)
    }
  }

  const close = hints.subscribe('lane', null, ({ id }) => dispatch.wake(id))
  return {
    ...createReconcile(parts, states, dispatch, restoreHold),
    ...receiver,
    sweep: () => dispatch.sweep(),
    async sweepRunning() {
      await forgetDeletedHosts()
      for (const [hostId, state] of states) await checkSent(hostId, state)
      await silent.sweep()
      await receiver.sweep()
    },
    close,
  }
}

/** Tasks of a HELLO looked up per query. */
const atOnce = 500

const notTheSame =
  'its agent was restarted, copied or restored from a backup after it was sent, so whether the script ran is unknown'
const noStart = { noStart: true } as const
const journalLost = 'the agent lost its journal, so whether the script ran is unknown'

/**
 * Whether a HELLO comes from the process that the execution was sent to, with its whole journal. Only that
 * process may be sent it again: any other may be a copy, and both would run it. Agents 0.1.0 report no
 * instance (contract §4).
 */
function isSentTo(execution: Execution, state: HostState, hello: AgentHello): boolean {
  const { agentInstanceId = null, agentJournal } = execution
  const { instanceId = null, journal } = hello
  if (agentInstanceId !== instanceId) return false
  if (instanceId === null) return true
  const known = Math.max(agentJournal ?? 0, state.journal(instanceId))
  return journal !== undefined && journal.sequence >= known
}

/** Takes up links: compares executions sent over previous links with those the agent names. */
function createReconcile(
  parts: EngineParts,
  states: HostStates,
  dispatch: Dispatch,
  restoreHold: RestoreHold,
) {
  const { executions, links, store, clock } = parts

  /** Why an execution that the agent does not name counts as LOST; null if it is resent. */
  function whyLost(
    running: RunningExecution,
    state: HostState,
    hello: AgentHello,
    isOurs: boolean,
  ): string | null {
    const { execution } = running
    if (execution.agentStoreId !== hello.storeId) return journalLost
    // Another agent may have a copy of the same journal.
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
      await executions.transition(
        asNamed(
          claim,
          news.map(({ execution }) => execution.id),
        ),
      )
    for (const running of named) {
      const phase = phases.find((each) => each === says.get(running.execution.taskId))
      // A phase before the stored one comes from an older copy of the journal.
      const isBehind = phase !== undefined && isLaterPhase(running.execution.phase ?? 'SCRIPT', phase)
      resume(link, state, running, !isBehind && !links.refuses(link.hostId))
      if (phase !== undefined && !isBehind) await executions.reached(running.execution.id, phase)
    }
    if (lost.length > 0) parts.ended(await executions.transition(asLost({ link: claim }, lost)))
    // Cancels go first, so that the agent refuses the execution.
    for (const execution of again) if (execution.cancelRequested) cancel(link, state, execution)
    await dispatch.resend(link, again)
  }

  function cancel(link: AgentLink, state: HostState, { taskId }: Execution): void {
    state.cancelled.add(taskId)
    link.send('CANCEL_SCRIPT', { taskId })
  }

  /** Reports the stored output, so that the agent continues; `mayStart` unless another agent has it too. */
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

  /**
   * Answers executions named by the agent that no running task has: it forgets them, or sends a late result.
   */
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

  /** Takes over executions sent over previous links; null if this link closed or was replaced meanwhile. */
  async function takeUp(
    link: AgentLink,
    state: HostState,
    ready: (() => void) | undefined,
  ): Promise<{ sent: RunningExecution[]; isOurs: boolean } | null> {
    const { claim, hello } = link
    await links.ready(claim)
    ready?.()
    // Judged before anything is sent over the link.
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
    /** Called once a link is up, for rsm agents after HELLO. `ready`: the store knows that it accepts work. */
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
