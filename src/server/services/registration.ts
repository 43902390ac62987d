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
  created: boolean
  /** Static cluster that the host joined. */
  clusterId: number | null
  /** Agent whose token this registration replaced; its link must close. */
  replacedAgentId: string | null
  /** Record without an agent that gave up this hostname. */
  yielded: Awaited<ReturnType<typeof yieldHostname>>
}

interface Attempt {
  tx: Transaction
  caller: Caller
  input: RegisterRequest
  enrollment: EnrollmentRecord | null
  /** Address of the agent as the server sees it. */
  address: string
}

const conflict = (message: string) => new RsmError('conflict', message)

function takenHostname(hostname: string): RsmError {
  return conflict(
    `The hostname ${hostname} belongs to another host; start the agent with --hostname NAME, ` +
      `or replace that host's agent: rsm hosts join --replace ${hostname}`,
  )
}

/** Whether the same enrollment token repeats a registration whose answer was lost (contract §3). */
function repeatsLostReply(host: HostRecord, enrollment: EnrollmentRecord | null): boolean {
  const { agent } = host
  if (enrollment === null || agent === null || agent.tokenHash === null) return false
  return agent.enrollmentId === enrollment.id && !agent.tokenUsed
}

/** The host to which a known agentId may bind; throws `conflict` if that would be a takeover (reliability S03). */
function knownAgent(host: HostRecord, { caller, enrollment, input }: Attempt): HostRecord {
  if (caller.type === 'user' || repeatsLostReply(host, enrollment)) return host
  if (caller.type === 'agent') return host
  if (enrollment?.hostId === host.id) return host
  // Its token is void, and `liftTombstone` has checked that the enrollment token is newer.
  if (host.agent?.revokedAt !== undefined) return host
  throw conflict(
    `Agent ${input.agentId} is already registered as host ${host.hostname}; give this agent its own --agent-id, ` +
      `or replace the previous one: rsm hosts join --replace ${host.hostname}`,
  )
}

function isAt({ ip }: HostRecord, address: string): boolean {
  const seen = canonicalAddress(address)
  return seen !== null && seen === canonicalAddress(ip)
}

/**
 * Renames the host of this hostname, which never had an agent, so that a new host can take the name. Tags, clusters,
 * credentials and pending tasks stay with the old record, because an enrollment token grants none of them. The new
 * name is random, so that it cannot be taken in advance.
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

/** The host to which this registration binds, or null for a new one (rules in the order of contract §3). */
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

/** Uses the token once, unless this repeats a registration whose answer was lost. */
function takeUse({ tx, enrollment }: Attempt, host: HostRecord | null): void {
  if (!enrollment || (host && repeatsLostReply(host, enrollment))) return
  if (enrollment.uses >= enrollment.maxUses)
    throw new RsmError('unauthenticated', 'This enrollment token is used up; make a new one: rsm hosts join')
  tx.put('enrollments', { ...enrollment, uses: enrollment.uses + 1 })
}

/** Adds the host to the token's static cluster; returns its id, or null if nothing changed. */
async function joinCluster({ tx, enrollment }: Attempt, hostId: number): Promise<number | null> {
  const cluster = enrollment?.clusterId == null ? undefined : await tx.get('clusters', enrollment.clusterId)
  if (!cluster || cluster.selector !== null || cluster.hostIds.includes(hostId)) return null
  tx.put('clusters', { ...cluster, hostIds: [...cluster.hostIds, hostId] })
  return cluster.id
}

/** Facts that the agent omits stay unchanged. */
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
 * Replaces a host's address if the host no longer has it. Keeps an address that the host never reported, because it
 * was seen or set. Keeps it also if SSH credentials are stored, because the server would send them to any address an
 * agent reports.
 */
function addressOf(
  { ip, systemInfo: previous, password, privateKey }: HostRecord,
  { ipAddresses }: SystemInfo,
): string {
  const isLost = previous?.ipAddresses.includes(ip) === true && !ipAddresses.includes(ip)
  if (!isLost || password !== null || privateKey !== null) return ip
  return ipAddresses.find((address) => isIP(address)) ?? ip
}

/** The record with new facts; null if nothing changed, or if this agent may not change it. */
function withFacts(host: HostRecord | undefined, caller: AgentCaller, facts: SystemFacts): HostRecord | null {
  if (host?.agent?.tokenHash !== caller.tokenHash) return null
  const systemInfo = systemInfoOf(facts, host.systemInfo)
  if (isDeepStrictEqual(systemInfo, host.systemInfo)) return null
  return { ...host, systemInfo, ip: addressOf(host, systemInfo) }
}

/** Stores facts and returns whether any changed; only then asks `mayChange`. Ignores duplicate agents. */
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

/** Registers an agent atomically; durable when this resolves. */
export function register(
  context: Context,
  caller: Caller,
  input: RegisterRequest,
  address: string,
  tokenHash: string,
): Promise<Registered> {
  return context.store.transact(async (tx) => {
    // The agent's token outlasts the caller's.
    if (caller.type === 'user') await stillAllowed(tx, caller, 'administer', { lasting: true })
    if (caller.type === 'agent' && caller.agentId !== input.agentId)
      throw new RsmError('forbidden', `This token does not belong to agent ${input.agentId}`)
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
    // A revoked agent already has a tombstone, which must keep its time.
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
