import { faultPoint } from '#fault-point'
import type { RunMark } from '../../../core/protocol/messages.ts'
import { messageOf, type Order } from '../../../core/protocol/orders.ts'
import { hostVariables, type KnownHost } from '../../../core/scripts/host-variables.ts'
import { limitWords, notEnforced } from '../../../core/tasks/limits.ts'
import { isoTime } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import { signatureLife } from '../../storage/keys/keys.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { LinkClaim } from '../../storage/ports/cluster.ts'
import type { End, Execution, RunningExecution } from '../../storage/ports/executions.ts'
import type { Keys } from '../../storage/ports/keys.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { EngineParts } from '../parts.ts'
import type { HostStates } from './host-states.ts'
import { orderFor, orderOf, unfitPath } from './order.ts'

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

export function createSending(parts: EngineParts, states: HostStates): Sending {
  const { executions, store, keys, serverRuns, clock, log } = parts

  function outboundOf(task: TaskRecord): OutboundTask {
    const fault = sealedFault(parts, task)
    const secrets = fault === null ? openSecrets(keys, task) : {}
    return { task, order: orderOf(task, { secrets, maxFileSize: parts.maxFileSize }), fault }
  }

  async function outboundTasks(taken: readonly Execution[]): Promise<Map<string, OutboundTask>> {
    const found = new Map<string, OutboundTask>()
    for (const id of new Set(taken.map(({ taskId }) => taskId))) {
      const task = await store.get('tasks', id)
      if (!task || task.type === 'INSTALL') continue
      found.set(id, outboundOf(task))
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

  /** Undefined if the store is unreachable. */
  async function packed(
    sent: readonly Execution[],
  ): Promise<{ found: Map<string, OutboundTask>; mark: RunMark | null } | undefined> {
    try {
      // Read after the executions were marked as sent, so that the mark covers them.
      return { found: await outboundTasks(sent), mark: await serverRuns.mark() }
    } catch (error) {
      log.warn({ err: error }, 'could not read the tasks to send, or how far the store is: sending nothing')
      return undefined
    }
  }

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
        parts.ended(await executions.refuse(claim, ends))
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

/** Throws if they cannot be decrypted. */
function openSecrets(keys: Keys, { id, secretParams }: TaskRecord): Record<string, string> {
  if (secretParams === null) return {}
  return JSON.parse(keys.open(secretParams, `tasks/${id}/secretParams`)) as Record<string, string>
}

/** Why the secret parameters of a task cannot be decrypted, or null. */
function sealedFault({ keys, log }: { keys: Keys; log: Log }, task: TaskRecord): string | null {
  try {
    openSecrets(keys, task)
    return null
  } catch (error) {
    log.error({ err: error, taskId: task.id }, 'could not decrypt the secret parameters of a task')
    return 'not started: the secret parameters of the task cannot be decrypted: their sealing key is missing, or they are damaged'
  }
}
