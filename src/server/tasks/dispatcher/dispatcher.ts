import { longestRun } from '../../../core/tasks/gates.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { EngineParts } from '../parts.ts'
import type { RestoreHold } from '../restore-hold.ts'
import { isTooSilent, silence, silentError } from '../scheduler/watch.ts'
import { createDispatch } from './dispatch.ts'
import type { HostState, HostStates } from './host-states.ts'
import { createReceiver, type Receiver } from './receive.ts'
import { createReconcile } from './reconcile.ts'

/**
 * The hosts whose agents have their links here: takes what is due for them, sends, receives and settles. It knows no plan;
 * a task may be another server's.
 */
export interface Dispatcher extends Pick<Receiver, 'received' | 'phase' | 'output' | 'complete'> {
  /** `ready`: is called once the store knows that the link takes work. */
  linked(link: AgentLink, ready?: () => void): Promise<void>
  unlinked(link: AgentLink): void
  /** Looks at what hints have lost, and takes up what a full disk had put off. */
  sweep(): Promise<void>
  /** Repeats what cancels may have been lost, ends as LOST what linked agents say nothing of, and what waits in vain for output. */
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

  /** Repeats cancels that may have been lost; cancels and forgets what ended without a word of the agent, such as what is LOST. */
  async function checkSent(hostId: number, state: HostState): Promise<void> {
    for (const taskId of new Set([...state.named, ...state.heard.keys()])) {
      const { execution } = (await executions.find(taskId, hostId)) ?? {}
      if (execution?.status !== 'RUNNING') {
        // An execution that waits in the agent's queue must not start after its result is final.
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

/**
 * Looks after executions of which linked agents say nothing. Of hosts without a link the owner of the task does: it can't know
 * what is heard over a link elsewhere.
 */
function createSilent(parts: EngineParts, states: HostStates) {
  const { executions, store, clock } = parts

  async function longestOf(taskId: string): Promise<number> {
    const task = await store.get('tasks', taskId)
    return longestRun(task?.timeout ?? 0, task?.gates)
  }

  async function check(link: AgentLink, { named, heard }: HostState): Promise<void> {
    const now = clock.monotonic()
    for (const [taskId, at] of heard) {
      // A linked agent of ours that has named it says that it still runs: the task's owner bounds that.
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
