import { closeCodes } from '../../../core/protocol/close-codes.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { Execution, Offer } from '../../storage/ports/executions.ts'
import type { EngineParts } from '../parts.ts'
import type { HostState, HostStates } from './host-states.ts'
import { createSending } from './sending.ts'

/** A base-protocol agent reports no capacity; this default stands for it (contract §9). */
const defaultCapacity = 16

function offerOf({ claim, hello }: AgentLink): Offer {
  return {
    claim,
    capacity: hello?.capabilities.maxExecutions ?? defaultCapacity,
    agent: {
      agentStoreId: hello?.storeId ?? null,
      agentInstanceId: hello?.instanceId ?? null,
      agentJournal: hello?.journal?.sequence ?? null,
    },
  }
}

/** Takes what is due for the hosts that are linked here, marks it as sent, and only then sends it. */
export interface Dispatch {
  /** There may be something to take for the host, or to cancel on it. */
  wake(hostId: number): void
  /** Sends executions that are marked as sent already once more. */
  resend(link: AgentLink, executions: readonly Execution[]): Promise<void>
  /** Looks at what hints have lost, and takes up what a full disk had put off. */
  sweep(): Promise<void>
}

export function createDispatch(parts: EngineParts, states: HostStates): Dispatch {
  const { executions, store } = parts
  const sender = createSending(parts, states)
  let hinted = new Set<number>()

  async function sendDue(links: readonly AgentLink[]): Promise<void> {
    const byHost = new Map(links.map((link) => [link.hostId, link]))
    const about = await sender.aboutHosts(links)
    const taken = await executions.take(links.map(offerOf))
    // A link may have gone, or been replaced by one that has said HELLO already, while "sent" went to disk.
    const unsent = await sender.sendAll(taken, (hostId) => byHost.get(hostId), about)
    const lost = new Set<HostState>()
    for (const id of unsent) {
      const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
      const claim = byHost.get(hostId)?.claim
      const state = states.of(hostId)
      if (claim) state.unsent.set(id, claim)
      lost.add(state)
    }
    for (const state of lost) parts.inBackground(requeue(state), 'taking back of frames that did not leave')
  }

  /** Frames that never left: their executions wait again. */
  function requeue(state: HostState): Promise<void> {
    state.requeuing ??= requeueAll(state).finally(() => {
      state.requeuing = null
    })
    return state.requeuing
  }

  async function requeueAll({ unsent }: HostState): Promise<void> {
    for (const claim of new Set(unsent.values())) {
      const ids = [...unsent].flatMap(([id, its]) => (its === claim ? [id] : []))
      parts.ended(await executions.returnUnsent(claim, ids))
      for (const id of ids) unsent.delete(id)
    }
  }

  /** Of what the agent has: it may wait behind thousands that it has not. */
  async function sendCancels(links: readonly AgentLink[]): Promise<void> {
    for (const link of links) {
      const state = states.of(link.hostId)
      if (!link.hello || state.link !== link) continue
      for (const taskId of state.named) {
        if (state.cancelled.has(taskId)) continue
        const { execution } = (await executions.find(taskId, link.hostId)) ?? {}
        if (execution?.status !== 'RUNNING' || !execution.cancelRequested) continue
        if (link.send('CANCEL_SCRIPT', { taskId })) state.cancelled.add(taskId)
      }
    }
  }

  /** All hosts that were hinted at in one turn share a step. */
  async function round(): Promise<void> {
    const hostIds = [...hinted]
    hinted = new Set()
    const links = hostIds.flatMap((hostId) => states.get(hostId)?.link ?? [])
    // What a closing link takes comes back at once: it would be taken, written down and given back again and again.
    const linked = links.filter(({ isOpen }) => isOpen)
    const sending = sendDue(linked)
    for (const { hostId } of linked) {
      const state = states.of(hostId)
      state.sending = Promise.allSettled([state.sending, sending])
    }
    await sendCancels(linked)
    await sending
    // Of what was cancelled while it was being sent.
    await sendCancels(linked)
  }

  function wake(hostId: number): void {
    if (!states.get(hostId)?.link?.isOpen || parts.isStopping()) return
    if (hinted.size === 0) queueMicrotask(() => parts.inBackground(round(), 'sending of executions'))
    hinted.add(hostId)
  }

  return {
    wake,

    async resend(link, sent) {
      if (sent.length === 0) return
      const unsent = await sender.sendAll(sent, () => link, await sender.aboutHosts([link]))
      // What does not leave now is judged by the next HELLO.
      if (unsent.length > 0) link.close(closeCodes.overloaded, 'the server cannot take this just now')
    },

    async sweep() {
      // All that it does is written first: it would fail for each host, each time, and say so.
      if (store.readOnlyReason !== null) return
      await Promise.all([...states.values()].filter(({ unsent }) => unsent.size > 0).map(requeue))
      const linked = [...states].flatMap(([hostId, { link }]) => (link?.isOpen ? [hostId] : []))
      for (const hostId of await executions.waiting(linked)) wake(hostId)
    },
  }
}
