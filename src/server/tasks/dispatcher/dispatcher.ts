import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { EngineParts } from '../parts.ts'
import type { RestoreHold } from '../restore-hold.ts'
import { createDispatch } from './dispatch.ts'
import type { HostQueue, HostQueues } from './host-queues.ts'
import { createReceiver, type Receiver } from './receive.ts'
import { createReconcile } from './reconcile.ts'
import { createSilent } from './silent.ts'

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

export function createDispatcher(parts: EngineParts, queues: HostQueues, held: RestoreHold): Dispatcher {
  const { executions, hints, store } = parts
  const dispatch = createDispatch(parts, queues)
  const receiver = createReceiver(parts, queues)
  const silent = createSilent(parts, queues)

  async function forgetDeletedHosts(): Promise<void> {
    const idle = [...queues].flatMap(([hostId, { epoch, unsent }]) =>
      epoch === null && unsent.size === 0 ? [hostId] : [],
    )
    const hosts = await store.getMany('hosts', idle)
    for (const [at, hostId] of idle.entries())
      if (hosts[at] === undefined && queues.get(hostId)?.epoch === null) queues.delete(hostId)
  }

  /** Repeats cancels that may have been lost; cancels and forgets what ended without a word of the agent, such as what is LOST. */
  async function lookAtSent(hostId: number, queue: HostQueue): Promise<void> {
    for (const taskId of new Set([...queue.named, ...queue.heard.keys()])) {
      const { execution } = (await executions.find(taskId, hostId)) ?? {}
      if (execution?.status !== 'RUNNING') {
        // An execution that waits in the agent's queue must not start after its result is final.
        queue.link?.send('CANCEL_SCRIPT', { taskId })
        queue.forget(taskId)
      } else if (execution.cancelRequested) dispatch.look(hostId)
    }
  }

  const close = hints.subscribe('lane', null, ({ id }) => dispatch.look(id))
  return {
    ...createReconcile(parts, queues, dispatch, held),
    ...receiver,
    sweep: () => dispatch.sweep(),
    async sweepRunning() {
      await forgetDeletedHosts()
      for (const [hostId, queue] of queues) await lookAtSent(hostId, queue)
      await silent.sweep()
      await receiver.sweep()
    },
    close,
  }
}
