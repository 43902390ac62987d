import { longestRun } from '../../../core/tasks/gates.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { EngineParts } from '../parts.ts'
import type { RestoreHold } from '../restore-hold.ts'
import { isTooSilent, silence, silentError } from '../scheduler/watch.ts'
import { createDispatch } from './dispatch.ts'
import type { HostState, HostStates } from './host-states.ts'
import { createReceiver, type Receiver } from './receive.ts'
import { createReconcile } from './reconcile.ts'

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

/** Ends executions that linked agents do not report; for unlinked hosts, the task's owner does. */
function createSilent(parts: EngineParts, states: HostStates) {
  const { executions, store, clock } = parts

  async function longestOf(taskId: string): Promise<number> {
    const task = await store.get('tasks', taskId)
    return longestRun(task?.timeout ?? 0, task?.gates)
  }

  async function check(link: AgentLink, { named, heard }: HostState): Promise<void> {
    const now = clock.monotonic()
    for (const [taskId, at] of heard) {
      // A linked agent that named the task reports that it still runs: the task's owner bounds that.
      if (link.hello && named.has(taskId)) heard.set(taskId, now)
      else if (now - at > silence && isTooSilent(await longestOf(taskId), now - at))
        parts.ended(
          await executions.lose(link.claim, [
            { id: `${taskId}/${link.hostId}`, error: silentError(now - at) },
          ]),
        )
    }
  }

  return {
    async sweep(): Promise<void> {
      for (const state of states.values()) if (state.link) await check(state.link, state)
    },
  }
}
