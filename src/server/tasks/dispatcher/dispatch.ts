import { faultPoint } from '#fault-point'
import { closeCodes } from '../../../core/protocol/close-codes.ts'
import type { RunMark } from '../../../core/protocol/messages.ts'
import { messageOf, type Order } from '../../../core/protocol/orders.ts'
import { hostVariables, type KnownHost } from '../../../core/scripts/params.ts'
import { limitWords, notEnforced } from '../../../core/tasks/limits.ts'
import { isoTime } from '../../../disk/clock.ts'
import { asRefused, asReturned } from '../../storage/executions/transitions.ts'
import { signatureLife } from '../../storage/keys.ts'
import type { AgentLink, LinkClaim } from '../../storage/ports/cluster.ts'
import type { End, Execution, Offer, RunningExecution } from '../../storage/ports/executions.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { EngineParts } from '../parts.ts'
import type { HostState, HostStates } from './host-states.ts'
import { orderFor, orderOf, unfitPath } from './order.ts'

/** Default capacity for base-protocol agents, which report none (contract §9). */
const defaultCapacity = 16

const undecryptable =
  'not started: the secret parameters of the task cannot be decrypted: their sealing key is missing, or they are damaged'

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
      parts.ended(await executions.transition(asReturned(claim, ids)))
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

type Variables = Readonly<Record<string, string>>

interface OutboundTask {
  task: TaskRecord
  order: Order
  /** Why the task cannot be sent to any host, or null. */
  fault: string | null
}

interface Sending {
  /** Script variables of these hosts, by id; omits base-protocol agents. */
  aboutHosts(links: readonly AgentLink[]): Promise<Map<number, Variables>>
  /** Returns the ids of executions whose frame was not sent and that are still marked as sent. */
  sendAll(
    sent: readonly Execution[],
    linkOf: (hostId: number) => AgentLink | undefined,
    about: ReadonlyMap<number, Variables>,
  ): Promise<string[]>
}

function createSending(parts: EngineParts, states: HostStates): Sending {
  const { executions, store, keys, serverRuns, clock, log } = parts

  /** Null if they cannot be decrypted. */
  function openSecrets({ id, secretParams }: TaskRecord): Record<string, string> | null {
    if (secretParams === null) return {}
    try {
      return JSON.parse(keys.open(secretParams, `tasks/${id}/secretParams`)) as Record<string, string>
    } catch (error) {
      log.error({ err: error, taskId: id }, 'could not decrypt the secret parameters of a task')
      return null
    }
  }

  async function outboundTasks(taken: readonly Execution[]): Promise<Map<string, OutboundTask>> {
    const found = new Map<string, OutboundTask>()
    for (const id of new Set(taken.map(({ taskId }) => taskId))) {
      const task = await store.get('tasks', id)
      if (!task || task.type === 'INSTALL') continue
      const secrets = openSecrets(task)
      const order = orderOf(task, { secrets: secrets ?? {}, maxFileSize: parts.maxFileSize })
      found.set(id, { task, order, fault: secrets === null ? undecryptable : null })
    }
    return found
  }

  async function aboutHosts(links: readonly AgentLink[]): Promise<Map<number, Variables>> {
    const ids = links.flatMap(({ hello, hostId }) => (hello ? [hostId] : []))
    const known: KnownHost[] = ids.length === 0 ? [] : await parts.knownHosts(ids)
    return new Map(known.map((host) => [host.id, hostVariables(host)]))
  }

  function send(
    { task, order }: OutboundTask,
    link: AgentLink,
    hostname: string,
    mark: RunMark | null,
    about?: Variables,
  ): boolean {
    const linkId = link.hello?.linkId
    const { kind, ...payload } = orderFor(order, hostname, about)
    const bound = {
      ...payload,
      ...(link.hello && mark && { mark: keys.authenticated(link.agentId, mark) }),
      ...(linkId === undefined ? {} : { linkId }),
    }
    const expiry = isoTime(clock.now() + signatureLife)
    const type = messageOf[kind]
    const hasLeft = link.send(type, keys.sign(type, link.agentId, bound, expiry))
    const state = states.of(link.hostId)
    if (hasLeft && state.link === link) {
      state.named.add(task.id)
      state.heard.set(task.id, clock.monotonic())
    }
    return hasLeft
  }

  async function sendAll(
    sent: readonly Execution[],
    linkOf: (hostId: number) => AgentLink | undefined,
    about: ReadonlyMap<number, Variables>,
  ): Promise<string[]> {
    if (sent.length === 0) return []
    let found: Map<string, OutboundTask>
    let mark: RunMark | null
    try {
      // Read after the executions were marked as sent, so that the mark covers them.
      found = await outboundTasks(sent)
      mark = await serverRuns.mark()
    } catch (error) {
      log.warn({ err: error }, 'could not read the tasks to send, or how far the store is: sending nothing')
      return sent.map(({ id }) => id)
    }
    const unsent: string[] = []
    const refused = new Map<LinkClaim, End[]>()
    for (const [at, { id, taskId, hostId, hostname }] of sent.entries()) {
      const [outbound, link] = [found.get(taskId), linkOf(hostId)]
      let now: RunningExecution | undefined
      try {
        // It may have ended since it was marked: a cancel ends it at once if the agent knows no cancels.
        now = await executions.find(taskId, hostId)
      } catch (error) {
        log.warn({ err: error }, 'could not read whether executions still run: not sending them')
        unsent.push(...sent.slice(at).map((each) => each.id))
        break
      }
      if (!outbound || !link || now?.execution.status !== 'RUNNING') continue
      const error = outbound.fault ?? unfit(outbound.task, link, hostname)
      if (error !== null) refused.set(link.claim, [...(refused.get(link.claim) ?? []), { id, error }])
      else if (!send(outbound, link, hostname, mark, about.get(hostId))) unsent.push(id)
      else faultPoint('server.frame.after')
    }
    for (const [claim, ends] of refused)
      try {
        parts.ended(await executions.transition(asRefused(claim, ends)))
      } catch (error) {
        log.warn({ err: error }, 'could not store the executions that agents cannot run')
        unsent.push(...ends.map(({ id }) => id))
      }
    return unsent
  }

  return { aboutHosts, sendAll }
}

/** Why a task cannot go to this agent: an agent that does not know a limit or a user would ignore it. */
function unfit(task: TaskRecord, { hello }: AgentLink, hostname: string): string | null {
  if ((task.copy || task.fetch || task.stdin) && hello?.capabilities.files !== true)
    return 'not started: agent too old for files; upgrade rsm on this host'
  if (task.upgrade && hello === null) return 'not started: the agent of this host does not support upgrades'
  if (task.runAs !== null && hello === null)
    return 'not started: the agent of this host cannot run scripts as another user'
  if (task.gates && hello?.capabilities.gates !== true)
    return 'not started: the agent of this host is too old to verify or roll back what it runs; upgrade it (rsm hosts upgrade)'
  if (!task.limits) return unfitPath(task, hostname)
  const missing = notEnforced(task.limits, hello?.capabilities.limits ?? [])
  if (missing.length === 0) return null
  const words = missing.map((name) => limitWords[name]).join(' and ')
  return `not started: the agent of this host cannot limit ${words}`
}
