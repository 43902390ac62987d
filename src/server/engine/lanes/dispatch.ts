import { faultPoint } from '#fault-point'
import { closeCodes } from '../../../core/protocol/close-codes.ts'
import type { RunMark } from '../../../core/protocol/messages.ts'
import { hostVariables, type KnownHost } from '../../../core/script/host-variables.ts'
import { limitWords, notEnforced } from '../../../core/task/limits.ts'
import { isoTime } from '../../clock.ts'
import { signatureLife } from '../../keys.ts'
import type { End, Execution, Offer, RunningExecution } from '../../seams/executions.ts'
import type { LinkClaim } from '../../seams/links.ts'
import type { TaskRecord } from '../../seams/records/task.ts'
import type { AgentLink } from '../agent-link.ts'
import type { EngineParts } from '../parts.ts'
import type { HostLane, HostLanes } from './host-lanes.ts'
import { type Order, orderFor, orderOf, unfitPath } from './order.ts'
import { openSecrets, sealedFault } from './secrets.ts'

/** A base-protocol agent reports no capacity; this default stands for it (contract §9). */
const defaultCapacity = 16

type Variables = Readonly<Record<string, string>>

/** A task that is about to be sent: the same for all of its hosts. */
interface Parcel {
  task: TaskRecord
  order: Order
  /** Why no host can be sent it. */
  fault: string | null
}

/** Why a task may not go to this agent: one that does not know a limit, or a user, would run the script without it. */
function unfit(task: TaskRecord, { hello }: AgentLink, hostname: string): string | null {
  if ((task.copy || task.fetch || task.stdin) && hello?.capabilities.files !== true)
    return 'not started: agent too old: it takes no files; upgrade rsm on this host'
  if (task.upgrade && hello === null) return 'not started: the agent of this host takes no upgrades'
  if (task.runAs !== null && hello === null)
    return 'not started: the agent of this host can not run scripts as another user'
  if (task.gates && hello?.capabilities.gates !== true)
    return 'not started: the agent of this host is too old to verify or roll back what it runs; upgrade it (rsm hosts upgrade)'
  if (!task.limits) return unfitPath(task, hostname)
  const missing = notEnforced(task.limits, hello?.capabilities.limits ?? [])
  if (missing.length === 0) return null
  const words = missing.map((name) => limitWords[name]).join(' and ')
  return `not started: the agent of this host can not limit ${words}`
}

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
  look(hostId: number): void
  /** Sends executions that are marked as sent already once more. */
  resend(link: AgentLink, executions: readonly Execution[]): Promise<void>
  /** Looks at what hints have lost, and takes up what a full disk had put off. */
  sweep(): Promise<void>
}

export function createDispatch(parts: EngineParts, lanes: HostLanes): Dispatch {
  const { executions, store, keys, serverRuns, clock, log } = parts
  let hinted = new Set<number>()

  function parcelOf(task: TaskRecord): Parcel {
    const fault = sealedFault(parts, task)
    const secrets = fault === null ? openSecrets(keys, task) : {}
    return { task, order: orderOf(task, { secrets, maxFileSize: parts.maxFileSize }), fault }
  }

  async function parcels(taken: readonly Execution[]): Promise<Map<string, Parcel>> {
    const found = new Map<string, Parcel>()
    for (const id of new Set(taken.map(({ taskId }) => taskId))) {
      const task = await store.get('tasks', id)
      if (!task || task.type === 'INSTALL') continue
      found.set(id, parcelOf(task))
    }
    return found
  }

  /** What scripts are told of these hosts, by id; nothing for a base-protocol agent. */
  async function aboutHosts(links: readonly AgentLink[]): Promise<Map<number, Variables>> {
    const ids = links.flatMap(({ hello, hostId }) => (hello ? [hostId] : []))
    const known: KnownHost[] = ids.length === 0 ? [] : await parts.knownHosts(ids)
    return new Map(known.map((host) => [host.id, hostVariables(host)]))
  }

  function send(
    { task, order }: Parcel,
    link: AgentLink,
    hostname: string,
    mark: RunMark | null,
    about?: Variables,
  ): boolean {
    const linkId = link.hello?.linkId
    const { type, payload } = orderFor(order, hostname, about)
    const bound = {
      ...payload,
      ...(link.hello && mark && { mark }),
      ...(linkId === undefined ? {} : { linkId }),
    }
    const expiry = isoTime(clock.now() + signatureLife)
    const hasLeft = link.send(type, keys.sign(type, link.agentId, bound, expiry))
    const lane = lanes.of(link.hostId)
    if (hasLeft && lane.link === link) {
      lane.named.add(task.id)
      lane.heard.set(task.id, clock.monotonic())
    }
    return hasLeft
  }

  /** Undefined where the store can't be reached: what it has come to, or what is to be sent, is not known then. */
  async function packed(
    sent: readonly Execution[],
  ): Promise<{ found: Map<string, Parcel>; mark: RunMark | null } | undefined> {
    try {
      // The mark is of a store that knows it has them marked as sent.
      return { found: await parcels(sent), mark: await serverRuns.mark() }
    } catch (error) {
      log.warn(
        { err: error },
        'could not read what is to be sent, or how far the store has come: nothing is sent',
      )
      return undefined
    }
  }

  /** Sends what is marked as sent; answers the ids of those whose frame did not leave and that are still marked. */
  async function sendAll(
    sent: readonly Execution[],
    linkOf: (hostId: number) => AgentLink | undefined,
    about: ReadonlyMap<number, Variables>,
  ): Promise<string[]> {
    if (sent.length === 0) return []
    const all = await packed(sent)
    if (all === undefined) return sent.map(({ id }) => id)
    const { found, mark } = all
    const unsent: string[] = []
    const refused = new Map<LinkClaim, End[]>()
    for (const [at, { id, taskId, hostId, hostname }] of sent.entries()) {
      const [parcel, link] = [found.get(taskId), linkOf(hostId)]
      let now: RunningExecution | undefined
      try {
        // It may have ended since it was marked: a cancel ends it where the agent knows none.
        now = await executions.find(taskId, hostId)
      } catch (error) {
        log.warn({ err: error }, 'could not read whether what is to be sent still runs: it is not sent')
        unsent.push(...sent.slice(at).map((each) => each.id))
        break
      }
      if (!parcel || !link || now?.execution.status !== 'RUNNING') continue
      const error = parcel.fault ?? unfit(parcel.task, link, hostname)
      if (error !== null) refused.set(link.claim, [...(refused.get(link.claim) ?? []), { id, error }])
      else if (!send(parcel, link, hostname, mark, about.get(hostId))) unsent.push(id)
      else faultPoint('server.frame.after')
    }
    for (const [claim, ends] of refused)
      try {
        parts.ended(await executions.refuse(claim, ends))
      } catch (error) {
        log.warn({ err: error }, 'could not write down that agents must not run what was taken for them')
        unsent.push(...ends.map(({ id }) => id))
      }
    return unsent
  }

  async function sendDue(links: readonly AgentLink[]): Promise<void> {
    const byHost = new Map(links.map((link) => [link.hostId, link]))
    const about = await aboutHosts(links)
    const taken = await executions.take(links.map(offerOf))
    // A link may have gone, or been replaced by one that has said HELLO already, while "sent" went to disk.
    const unsent = await sendAll(taken, (hostId) => byHost.get(hostId), about)
    const lost = new Set<HostLane>()
    for (const id of unsent) {
      const hostId = Number(id.slice(id.lastIndexOf('/') + 1))
      const claim = byHost.get(hostId)?.claim
      const lane = lanes.of(hostId)
      if (claim) lane.unsent.set(id, claim)
      lost.add(lane)
    }
    for (const lane of lost) parts.inBackground(giveBack(lane), 'taking back of frames that did not leave')
  }

  /** Frames that never left: their executions wait again. */
  function giveBack(lane: HostLane): Promise<void> {
    lane.returning ??= returnAll(lane).finally(() => {
      lane.returning = null
    })
    return lane.returning
  }

  async function returnAll({ unsent }: HostLane): Promise<void> {
    for (const claim of new Set(unsent.values())) {
      const ids = [...unsent].flatMap(([id, its]) => (its === claim ? [id] : []))
      parts.ended(await executions.returnUnsent(claim, ids))
      for (const id of ids) unsent.delete(id)
    }
  }

  /** Of what the agent has: it may wait behind thousands that it has not. */
  async function sendCancels(links: readonly AgentLink[]): Promise<void> {
    for (const link of links) {
      const lane = lanes.of(link.hostId)
      if (!link.hello || lane.link !== link) continue
      for (const taskId of lane.named) {
        if (lane.cancelled.has(taskId)) continue
        const { execution } = (await executions.find(taskId, link.hostId)) ?? {}
        if (execution?.status !== 'RUNNING' || !execution.cancelRequested) continue
        if (link.send('CANCEL_SCRIPT', { taskId })) lane.cancelled.add(taskId)
      }
    }
  }

  /** All hosts that were hinted at in one turn share a step. */
  async function round(): Promise<void> {
    const hostIds = [...hinted]
    hinted = new Set()
    const links = hostIds.flatMap((hostId) => lanes.get(hostId)?.link ?? [])
    // What a closing link takes comes back at once: it would be taken, written down and given back again and again.
    const linked = links.filter(({ isOpen }) => isOpen)
    const sending = sendDue(linked)
    for (const { hostId } of linked) {
      const lane = lanes.of(hostId)
      lane.sending = Promise.allSettled([lane.sending, sending])
    }
    await sendCancels(linked)
    await sending
    // Of what was cancelled while it was being sent.
    await sendCancels(linked)
  }

  function look(hostId: number): void {
    if (!lanes.get(hostId)?.link?.isOpen || parts.isStopping()) return
    if (hinted.size === 0) queueMicrotask(() => parts.inBackground(round(), 'sending of executions'))
    hinted.add(hostId)
  }

  return {
    look,

    async resend(link, sent) {
      if (sent.length === 0) return
      const unsent = await sendAll(sent, () => link, await aboutHosts([link]))
      // What does not leave now is judged by the next HELLO.
      if (unsent.length > 0) link.close(closeCodes.overloaded, 'the server can not take this just now')
    },

    async sweep() {
      // All that it does is written first: it would fail for each host, each time, and say so.
      if (store.readOnlyReason !== null) return
      await Promise.all([...lanes.values()].filter(({ unsent }) => unsent.size > 0).map(giveBack))
      const linked = [...lanes].flatMap(([hostId, { link }]) => (link?.isOpen ? [hostId] : []))
      for (const hostId of await executions.waiting(linked)) look(hostId)
    },
  }
}
