import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { EngineParts } from '../parts.ts'
import type { Held } from '../restore-hold.ts'
import { createDispatch } from './dispatch.ts'
import type { HostLane, HostLanes } from './host-queues.ts'
import { createReceiver, type Receiver } from './receive.ts'
import { createReconcile } from './reconcile.ts'
import { createSilent } from './silent.ts'

/**
 * The hosts whose agents have their links here: takes what is due for them, sends, receives and settles. It knows no plan;
 * a task may be another server's.
 */
export interface Lanes extends Pick<Receiver, 'received' | 'phase' | 'output' | 'complete'> {
  /** `ready`: is called once the store knows that the link takes work. */
  linked(link: AgentLink, ready?: () => void): Promise<void>
  unlinked(link: AgentLink): void
  /** Looks at what hints have lost, and takes up what a full disk had put off. */
  sweep(): Promise<void>
  /** Repeats what cancels may have been lost, ends as LOST what linked agents say nothing of, and what waits in vain for output. */
  sweepRunning(): Promise<void>
  close(): void
}

export function createLanes(parts: EngineParts, lanes: HostLanes, held: Held): Lanes {
  const { executions, hints, store } = parts
  const dispatch = createDispatch(parts, lanes)
  const receiver = createReceiver(parts, lanes)
  const silent = createSilent(parts, lanes)

  async function forgetDeletedHosts(): Promise<void> {
    const idle = [...lanes].flatMap(([hostId, { epoch, unsent }]) =>
      epoch === null && unsent.size === 0 ? [hostId] : [],
    )
    const hosts = await store.getMany('hosts', idle)
    for (const [at, hostId] of idle.entries())
      if (hosts[at] === undefined && lanes.get(hostId)?.epoch === null) lanes.delete(hostId)
  }

  /** Repeats cancels that may have been lost; cancels and forgets what ended without a word of the agent, such as what is LOST. */
  async function lookAtSent(hostId: number, lane: HostLane): Promise<void> {
    for (const taskId of new Set([...lane.named, ...lane.heard.keys()])) {
      const { execution } = (await executions.find(taskId, hostId)) ?? {}
      if (execution?.status !== 'RUNNING') {
        // An execution that waits in the agent's queue must not start after its result is final.
        lane.link?.send('CANCEL_SCRIPT', { taskId })
        lane.forget(taskId)
      } else if (execution.cancelRequested) dispatch.look(hostId)
    }
  }

  const close = hints.subscribe('lane', null, ({ id }) => dispatch.look(id))
  return {
    ...createReconcile(parts, lanes, dispatch, held),
    ...receiver,
    sweep: () => dispatch.sweep(),
    async sweepRunning() {
      await forgetDeletedHosts()
      for (const [hostId, lane] of lanes) await lookAtSent(hostId, lane)
      await silent.sweep()
      await receiver.sweep()
    },
    close,
  }
}
