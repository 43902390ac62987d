import type { AgentLink } from '../agent-link.ts'
import type { Held } from '../held.ts'
import type { EngineParts } from '../parts.ts'
import { createDispatch } from './dispatch.ts'
import type { HostLane, HostLanes } from './host-lanes.ts'
import { createReceiver, type Receiver } from './receive.ts'
import { createReconcile } from './reconcile.ts'

/**
 * The hosts whose agents have their links here: takes what is due for them, sends, receives and settles. It knows no plan;
 * a task may be another server's.
 */
export interface Lanes extends Pick<Receiver, 'received' | 'output' | 'complete'> {
  linked(link: AgentLink): Promise<void>
  unlinked(link: AgentLink): void
  /** Looks at what hints have lost, and takes up what a full disk had put off. */
  sweep(): Promise<void>
  /** Says of what still runs that it does, repeats what cancels may have been lost, and ends what waits in vain for output. */
  sweepRunning(): Promise<void>
  close(): void
}

export function createLanes(parts: EngineParts, lanes: HostLanes, held: Held): Lanes {
  const { executions, hints, store } = parts
  const dispatch = createDispatch(parts, lanes)
  const receiver = createReceiver(parts, lanes)

  async function forgetDeletedHosts(): Promise<void> {
    const idle = [...lanes].flatMap(([hostId, { epoch, unsent }]) =>
      epoch === null && unsent.size === 0 ? [hostId] : [],
    )
    const hosts = await store.getMany('hosts', idle)
    for (const [at, hostId] of idle.entries())
      if (hosts[at] === undefined && lanes.get(hostId)?.epoch === null) lanes.delete(hostId)
  }

  /** What has ended without a word of the agent, such as what is LOST. */
  async function forgetEnded(hostId: number, { named, cancelled }: HostLane): Promise<void> {
    for (const taskId of named) {
      const running = await executions.find(taskId, hostId)
      if (running?.execution.status === 'RUNNING') continue
      named.delete(taskId)
      cancelled.delete(taskId)
    }
  }

  const close = hints.subscribe('lane', null, ({ id }) => dispatch.look(id))
  return {
    ...createReconcile(parts, lanes, dispatch, held),
    ...receiver,
    sweep: () => dispatch.sweep(),
    async sweepRunning() {
      await forgetDeletedHosts()
      // A linked agent of ours that has named it says that it still runs.
      for (const [hostId, lane] of lanes) {
        await forgetEnded(hostId, lane)
        if (lane.link?.hello) executions.heard([...lane.named].map((taskId) => `${taskId}/${hostId}`))
      }
      for (const { hostId, cancelRequested } of await executions.open())
        if (cancelRequested) dispatch.look(hostId)
      await receiver.sweep()
    },
    close,
  }
}
