import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { RsmError } from '../../core/errors.ts'
import type { SystemInfo } from '../../core/hosts/host.ts'
import { duplicateReason } from '../../core/hosts/host-status.ts'
import type { RegisterRequest, SystemFacts } from '../../core/protocol/http/agent.ts'
import { canonicalAddress } from '../access/client-address.ts'
import { stillAllowed } from '../access/credentials.ts'
import type { AgentCaller, Caller } from '../storage/ports/caller.ts'
import type { Transaction } from '../storage/ports/store.ts'
import type { EnrollmentRecord, HostRecord } from '../storage/records/host.ts'
import { bury, liftTombstone } from '../storage/tombstones.ts'
import type { Context } from './context.ts'

interface Registered {
  hostId: number
  /** Whether the host is new. */
  created: boolean
  /** The cluster that it entered. */
  clusterId: number | null
  /** The agent whose token this registration ended: its link has to close. */
  replacedAgentId: string | null
  /** The record without an agent that had this hostname. */
  yielded: Awaited<ReturnType<typeof yieldHostname>>
}

interface Attempt {
  tx: Transaction
  caller: Caller
  input: RegisterRequest
  enrollment: EnrollmentRecord | null
  /** The agent's, as the server sees it. */
  address: string
}

const conflict = (message: string) => new RsmError('conflict', message)

function takenHostname(hostname: string): RsmError {
  return conflict(
    `The hostname ${hostname} belongs to another host; start the agent with --hostname NAME, ` +
      `or replace that host's agent: rsm hosts join --replace ${hostname}`,
  )
}

/** When the answer to a registration was lost, the same enrollment token may repeat it (contract §3). */
function repeatsLostReply(host: HostRecord, enrollment: EnrollmentRecord | null): boolean {
  const { agent } = host
  if (enrollment === null || agent === null || agent.tokenHash === null) return false
  return agent.enrollmentId === enrollment.id && !agent.tokenUsed
}

/** The host that an already known agentId may bind to; throws where it would be a take-over (reliability S03). */
function knownAgent(host: HostRecord, { caller, enrollment, input }: Attempt): HostRecord {
  if (caller.type === 'user' || repeatsLostReply(host, enrollment)) return host
  if (caller.type === 'agent') return host
  if (enrollment?.hostId === host.id) return host
  // Its token is void, and this one was made later: `liftTombstone` has seen to that.
  if (host.agent?.revokedAt !== undefined) return host
  throw conflict(
    `Agent ${input.agentId} is already registered as host ${host.hostname}; give this agent its own --agent-id, ` +
      `or replace the previous one: rsm hosts join --replace ${host.hostname}`,
  )
}

/** Whether the machine at this address is the one that a record describes. */
function isAt({ ip }: HostRecord, address: string): boolean {
  const seen = canonicalAddress(address)
  return seen !== null && seen === canonicalAddress(ip)
}

/**
 * Renames the record of this hostname, which never had an agent, so that a new host can have the name. Tags, clusters, credentials and
 * waiting tasks stay with the record, because an enrollment token grants none of them. Nobody can take the random name beforehand.
 */
async function yieldHostname(
  { tx, input }: Attempt,
  at: string,
): Promise<{ hostId: number; previous: string; hostname: string } | null> {
  const [record] = await tx.find('hosts', 'hostname', input.hostname.toLowerCase())
  if (!record) return null
  const { id: hostId, hostname: previous } = record
  const hostname = `${previous.slice(0, 230)}-unclaimed-${randomBytes(4).toString('hex')}`
  tx.put('hosts', { ...record, hostname, updatedAt: at })
  return { hostId, previous, hostname }
}

/** The host that this registration binds to, or null for a new one (contract §3, in its order). */
async function boundHost(attempt: Attempt): Promise<HostRecord | null> {
  const { tx, caller, input, enrollment, address } = attempt
  const [byAgent] = await tx.find('hosts', 'agentId', input.agentId)
  const bound = enrollment?.hostId == null ? undefined : await tx.get('hosts', enrollment.hostId)
  if (enrollment?.hostId != null && !bound)
    throw conflict(
      'The host that this enrollment token was issued for is gone; make a new token: rsm hosts join',
    )
  if (byAgent && bound && byAgent.id !== bound.id)
    throw conflict(`Agent ${input.agentId} is host ${byAgent.hostname}; give this agent its own --agent-id`)
  if (byAgent) return knownAgent(byAgent, attempt)
  if (bound) return bound
  const [byName] = await tx.find('hosts', 'hostname', input.hostname.toLowerCase())
  if (!byName) return null
  if (byName.agent !== null) throw takenHostname(byName.hostname)
  return caller.type === 'user' || isAt(byName, address) ? byName : null
}

/** Takes one use of the token, unless this repeats a registration whose answer was lost. */
function takeUse({ tx, enrollment }: Attempt, host: HostRecord | null): void {
  if (!enrollment || (host && repeatsLostReply(host, enrollment))) return
  if (enrollment.uses >= enrollment.maxUses)
    throw new RsmError('unauthenticated', 'This enrollment token is used up; make a new one: rsm hosts join')
  tx.put('enrollments', { ...enrollment, uses: enrollment.uses + 1 })
}

/** Answers the cluster that the host entered. */
async function joinCluster({ tx, enrollment }: Attempt, hostId: number): Promise<number | null> {
  const cluster = enrollment?.clusterId == null ? undefined : await tx.get('clusters', enrollment.clusterId)
  if (!cluster || cluster.selector !== null || cluster.hostIds.includes(hostId)) return null
  tx.put('clusters', { ...cluster, hostIds: [...cluster.hostIds, hostId] })
  return cluster.id
}

/** Facts that the agent omits stay as they were. */
function systemInfoOf(reported: SystemFacts, previous: SystemInfo | null): SystemInfo {
  const distribution = reported.distribution ?? previous?.distribution
  return {
    os: reported.os ?? previous?.os ?? 'unknown',
    ...(distribution === undefined ? {} : { distribution }),
    kernel: reported.kernel ?? previous?.kernel ?? 'unknown',
    arch: reported.arch ?? previous?.arch ?? 'unknown',
    cpuCores: reported.cpuCores ?? previous?.cpuCores ?? 0,
    memoryMB: reported.memoryMB ?? previous?.memoryMB ?? 0,
    diskGB: reported.diskGB ?? previous?.diskGB ?? 0,
    ipAddresses: reported.ipAddresses ?? previous?.ipAddresses ?? [],
  }
}

/**
 * The address of a host that has lost the one it was known by. An address from elsewhere stays: it was seen or set. So does
 * that of a host whose SSH credentials are stored, because the server would send them to any address that an agent reports.
 */
function addressOf(
  { ip, systemInfo: previous, password, privateKey }: HostRecord,
  { ipAddresses }: SystemInfo,
): string {
  const isLost = previous?.ipAddresses.includes(ip) === true && !ipAddresses.includes(ip)
  if (!isLost || password !== null || privateKey !== null) return ip
  return ipAddresses.find((address) => isIP(address)) ?? ip
}

/** The record with the facts of its agent; null if nothing is new, or this agent may not change it. */
function withFacts(host: HostRecord | undefined, caller: AgentCaller, facts: SystemFacts): HostRecord | null {
  if (host?.agent?.tokenHash !== caller.tokenHash) return null
  const systemInfo = systemInfoOf(facts, host.systemInfo)
  if (isDeepStrictEqual(systemInfo, host.systemInfo)) return null
  return { ...host, systemInfo, ip: addressOf(host, systemInfo) }
}

/** Whether anything has changed; `mayChange` is asked only then. While two agents use one identity, nothing does. */
export async function takeFacts(
  context: Context,
  caller: AgentCaller,
  facts: SystemFacts,
  mayChange: () => boolean,
): Promise<boolean> {
  const { store, presence } = context
  if (withFacts(await store.get('hosts', caller.hostId), caller, facts) === null) return false
  const [view] = await presence.views([caller.hostId])
  if (view?.statusReason?.includes(duplicateReason) || !mayChange()) return false
  return store.transact(async (tx) => {
    const next = withFacts(await tx.get('hosts', caller.hostId), caller, facts)
    if (next !== null) tx.put('hosts', { ...next, updatedAt: context.time() })
    return next !== null
  })
}

/** Registers an agent: the whole of it or nothing is durable when this resolves. */
export function register(
  context: Context,
  caller: Caller,
  input: RegisterRequest,
  address: string,
  tokenHash: string,
): Promise<Registered> {
  return context.store.transact(async (tx) => {
    // The agent's token outlasts the one that it was made by.
    if (caller.type === 'user') await stillAllowed(tx, caller, 'administer', { lasting: true })
    if (caller.type === 'agent' && caller.agentId !== input.agentId)
      throw new RsmError('forbidden', `This token is not the one of agent ${input.agentId}`)
    if (
      caller.type === 'agent' &&
      (await tx.get('hosts', caller.hostId))?.agent?.tokenHash !== caller.tokenHash
    )
      throw new RsmError('unauthenticated', 'This token is unknown or was revoked')
    const found = caller.type === 'enrollment' ? await tx.get('enrollments', caller.id) : undefined
    if (caller.type === 'enrollment' && !found)
      throw new RsmError(
        'unauthenticated',
        'This enrollment token was deleted; make a new one: rsm hosts join',
      )
    const attempt: Attempt = { tx, caller, input, enrollment: found ?? null, address }
    await liftTombstone(tx, input.agentId, caller, attempt.enrollment)
    const host = await boundHost(attempt)
    takeUse(attempt, host)
    const at = context.time()
    const yielded = host === null ? await yieldHostname(attempt, at) : null
    const id = host?.id ?? (await tx.nextId('hosts'))
    const previous = host?.agent
    // One that was revoked before has its tombstone: it must not become a later one.
    if (host && previous && previous.agentId !== input.agentId && previous.revokedAt === undefined)
      await bury(tx, host, 'revoked', at)
    const systemInfo = systemInfoOf(input, null)
    tx.put('hosts', {
      id,
      hostname: host?.hostname ?? input.hostname,
      ip: host?.ip ?? systemInfo.ipAddresses.find((ip) => isIP(ip)) ?? address,
      sshPort: host?.sshPort ?? 22,
      authType: host?.authType ?? 'NONE',
      username: host?.username ?? null,
      password: host?.password ?? null,
      privateKey: host?.privateKey ?? null,
      hostKey: host?.hostKey ?? null,
      tags: { ...host?.tags, ...attempt.enrollment?.tags },
      systemInfo,
      agent: {
        agentId: input.agentId,
        agentVersion: input.agentVersion ?? 'unknown',
        registeredAt: at,
        tokenHash,
        tokenUsed: false,
        enrollmentId: attempt.enrollment?.id ?? null,
      },
      createdAt: host?.createdAt ?? at,
      updatedAt: at,
    })
    const clusterId = await joinCluster(attempt, id)
    const replacedAgentId = host?.agent?.tokenHash ? host.agent.agentId : null
    return { hostId: id, created: host === null, clusterId, replacedAgentId, yielded }
  })
}
