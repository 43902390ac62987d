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

/** The ways to recognize the agent after a successful installation. */
interface Traces {
  /** The record of its token. */
  readonly enrollmentId: number
  /** The linked agent, as the host reports it. */
  readonly joined: Joined | null
}

/** Milliseconds, after `rsm agent install` has said that the agent is linked. */
const linkWithin = 30_000
const pollInterval = 100

/** Milliseconds: an installation that continues on the host may need the token after the task has given up. */
const tokenLife = 3600_000

/** Resolves when this server, or another on its store, has the link of the installed agent. Errors: InstallFault. */
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
 * The agent that was installed: the one that has registered with the token. Where none has, it had joined before, and only
 * the host knows which it is: it may be another host than the one whose record led there.
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
    throw new InstallFault(`rsm agent install on ${place} does not say whose agent is linked`, 1)
  const there = `${printable(joined.hostname).slice(0, 64)} (@id:${joined.hostId})`
  if (joined.hostId !== id)
    throw new InstallFault(
      `${place} is not ${hostname}: the agent there is that of ${there}. Mend the address: rsm hosts edit ${hostname} --ip ADDRESS`,
      1,
    )
  throw new InstallFault(`the agent on ${place} is not the one that ${hostname} has now; install it again`, 1)
}

/** A single-use enrollment token for an existing host (contract §3). */
export interface HostToken {
  /** Of its record. */
  readonly id: number
  readonly token: string
  /** Removes the token if it was not used. */
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
