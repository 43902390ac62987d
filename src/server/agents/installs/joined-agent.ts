import { setTimeout as delay } from 'node:timers/promises'
import { printable } from '../../../core/text/printable.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { Joined } from '../../../ssh/remote-install.ts'
import { newToken } from '../../access/credentials.ts'
import type { Links } from '../../storage/ports/cluster.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { HostRecord } from '../../storage/records/host.ts'
import { InstallFault } from './connection.ts'

interface Parts {
  readonly store: Store
  readonly links: Links
}

interface Traces {
  readonly enrollmentId: number
  /** The linked agent, as the host reports it. */
  readonly joined: Joined | null
}

/** Milliseconds after `rsm agent install` reports the link. */
const linkWithin = 30_000
const pollInterval = 100

/** Milliseconds: an installation may continue on the host, and need the token, after the task gave up. */
const tokenLife = 3600_000

/** Resolves when a server of this store has the link of the installed agent. Errors: InstallFault. */
export async function untilLinked(
  parts: Parts,
  host: HostRecord,
  traces: Traces,
  signal: AbortSignal,
): Promise<void> {
  const agentId = await installedAgent(parts, host, traces)
  for (const end = performance.now() + linkWithin; performance.now() < end; ) {
    if ((await parts.links.holders([host.id])).get(host.id)?.agentId === agentId) return
    await delay(pollInterval)
    signal.throwIfAborted()
  }
  throw new InstallFault(`the agent was installed, but this server has no link of ${host.hostname}`, 1)
}

/**
 * Id of the installed agent: the one that registered with the token. If none did, the agent had joined before, and
 * only the host knows its id; it may even belong to another host record.
 */
async function installedAgent(
  { store }: Parts,
  { id, hostname, ip, sshPort }: HostRecord,
  { enrollmentId, joined }: Traces,
): Promise<string> {
  const agent = (await store.get('hosts', id))?.agent ?? null
  if (agent?.enrollmentId === enrollmentId || (agent !== null && agent.agentId === joined?.agentId))
    return agent.agentId
  const place = `${ip}:${sshPort}`
  if (joined === null)
    throw new InstallFault(`rsm agent install on ${place} does not report which agent is linked`, 1)
  const there = `${printable(joined.hostname).slice(0, 64)} (@id:${joined.hostId})`
  if (joined.hostId !== id)
    throw new InstallFault(
      `${place} is not ${hostname}: its agent belongs to ${there}. Fix the address: rsm hosts edit ${hostname} --ip ADDRESS`,
      1,
    )
  throw new InstallFault(`the agent on ${place} is not the one that ${hostname} has now; install it again`, 1)
}

/** Single-use enrollment token for an existing host (contract §3). */
export interface HostToken {
  readonly id: number
  readonly token: string
  /** Removes the token if it is unused. */
  drop(): Promise<void>
}

export async function hostToken(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { id: hostId, hostname }: HostRecord,
  createdBy: string,
): Promise<HostToken> {
  const { token, tokenHash } = newToken('enrollment')
  const now = clock.now()
  const id = await store.transact(async (tx) => {
    const id = await tx.nextId('enrollments')
    tx.put('enrollments', {
      id,
      name: `install of ${hostname}`,
      tokenHash,
      maxUses: 1,
      uses: 0,
      tags: {},
      clusterId: null,
      hostId,
      createdBy,
      createdAt: isoTime(now),
      expiresAt: isoTime(now + tokenLife),
    })
    return id
  })
  return {
    id,
    token,
    drop: () =>
      store.transact(async (tx) => {
        if ((await tx.get('enrollments', id))?.uses === 0) tx.remove('enrollments', id)
      }),
  }
}
