import { closeCodes } from '../../../core/protocol/close-codes.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { Execution, Offer } from '../../storage/ports/executions.ts'
import type { EngineParts } from '../parts.ts'
import type { HostState, HostStates } from './host-states.ts'
import { createSending } from './sending.ts'

/** Default capacity for base-protocol agents, which report none (contract §9). */
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

/** Claims due executions for hosts linked here, marks them as sent, and only then sends them. */
export interface Dispatch {
  /** Schedules a check of the host for due executions and cancels. */
  wake(hostId: number): void
  /** Resends executions that are already marked as sent. */
  resend(link: AgentLink, executions: readonly Execution[]): Promise<void>
  /** Catches up on lost hints and on work that a full disk delayed. */
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
    // While "sent" went to disk, the link may have closed or been replaced by one after its HELLO.
    const unsent = await sender.sendAll(taken, (hostId) => byHost.get(hostId), about)
    const lost = new Set<HostState>()
    for (const id of unsent) {
      const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
      const claim = byHost.get(hostId)?.claim
      const state = states.of(hostId)
      if (claim) state.unsent.set(id, claim)
      lost.add(state)
    }
    for (const state of lost) parts.inBackground(requeue(state), 'requeuing unsent frames')
  }

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

  /** Checks only executions that the agent has, because thousands of others may wait for the host. */
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

  /** Handles the hosts that were hinted in one turn in one step. */
  async function round(): Promise<void> {
    const hostIds = [...hinted]
    hinted = new Set()
    const links = hostIds.flatMap((hostId) => states.get(hostId)?.link ?? [])
    // Skip closing links: their claims would be written and returned in a loop.
    const linked = links.filter(({ isOpen }) => isOpen)
    const sending = sendDue(linked)
    for (const { hostId } of linked) {
      const state = states.of(hostId)
      state.sending = Promise.allSettled([state.sending, sending])
    }
    await sendCancels(linked)
    await sending
    // Again, for executions cancelled while they were being sent.
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
      // Unsent executions are judged at the next HELLO.
      if (unsent.length > 0) link.close(closeCodes.overloaded, 'the server cannot take this just now')
    },

    async sweep() {
      // A read-only store would fail and log for each host on each sweep.
      if (store.readOnlyReason !== null) return
      await Promise.all([...states.values()].filter(({ unsent }) => unsent.size > 0).map(requeue))
      const linked = [...states].flatMap(([hostId, { link }]) => (link?.isOpen ? [hostId] : []))
      for (const hostId of await executions.waiting(linked)) wake(hostId)
    },
  }
}
