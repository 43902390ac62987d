import { RsmError } from '../../core/errors.ts'
import type { Server, Standing } from '../../core/protocol/http/server.ts'
import { type Clock, repeat } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import { serverVersion } from '../../disk/own-release.ts'
import {
  lease,
  type Member,
  type Ownership,
  renewEvery,
  type ServerSeen,
  type Shared,
} from './ports/cluster.ts'
import type { Data } from './ports/data.ts'

/** Membership of this server in its store, from start to stop. */
export interface Membership {
  readonly member: Member
  /** Milliseconds since its lease was last renewed, by its monotonic clock. */
  sinceRenewed(): number
  /** Whether the lease holds, so that no other server has taken over its tasks. */
  holds(): boolean
  /** Resolves with the reason to stop: another server took the name, or a newer rsm the store. */
  readonly fenced: Promise<RsmError>
  leave(): Promise<void>
}

/** Joins the servers of a store as `name`, until `leave`. */
export async function joinServers(
  ownership: Ownership,
  name: string,
  { clock, log }: { clock: Clock; log: Log },
): Promise<Membership> {
  let renewedAt = clock.monotonic()
  const member = await ownership.join(name)
  let isFailing = false
  let markFenced: (why: RsmError) => void = () => undefined
  const fenced = new Promise<RsmError>((resolve) => {
    markFenced = resolve
  })
  function fence(why: RsmError): void {
    void renewing.stop()
    log.error({ name }, `${why.message}: this server stops`)
    markFenced(why)
  }
  async function renew(): Promise<void> {
    if (await ownership.renew(member)) {
      if (isFailing) log.info({ name }, 'the lease of this server is renewed again')
      isFailing = false
      return
    }
    const hint = 'give each server of the store its own --server-name'
    fence(new RsmError('conflict', `another server has taken the name ${name}`, { hint }))
  }
  const renewing = repeat(renewEvery, renew, (error) => {
    if (error instanceof RsmError && error.code === 'conflict') return fence(error)
    // A server whose lease ends loses its tasks to others.
    if (!isFailing) log.warn({ err: error }, 'the lease of this server cannot be renewed; trying again')
    isFailing = true
  })
  function sinceRenewed(): number {
    // A connection to the store that is restored renews the lease at once, before the timer does.
    renewedAt = ownership.renewedAt(member) ?? renewedAt
    return clock.monotonic() - renewedAt
  }
  return {
    member,
    sinceRenewed,
    holds: () => sinceRenewed() < lease,
    fenced,
    leave() {
      void renewing.stop()
      return ownership.leave(member)
    },
  }
}

/** Answer of `GET /api/ready`: the server is ready if there are no reasons against it. */
export interface Readiness {
  readonly reasons: readonly string[]
  /** Whether open connections stay: true unless the server is starting or stopping. */
  readonly keepsConnections: boolean
  /** Null if this server has the store to itself. */
  readonly server: Standing | null
}

interface ReadinessParts {
  readonly data: Pick<Data, 'store' | 'audit' | 'shared'>
  readonly membership: Pick<Membership, 'member' | 'sinceRenewed' | 'holds'>
  readonly isAccepting: boolean
}

/**
 * Contains no paths or addresses, because it needs no login; `rsm server status` shows them on the machine.
 */
export function readinessOf({
  data: { store, audit, shared },
  membership,
  isAccepting,
}: ReadinessParts): Readiness {
  const isAway = (shared?.fault ?? null) !== null
  const against = {
    'it is starting or stopping': !isAccepting,
    'PostgreSQL cannot be reached': isAway,
    // Without PostgreSQL both refuse writes, and its reason is enough.
    'its store refuses writes': !isAway && store.readOnlyReason !== null,
    'its audit log refuses entries': !isAway && audit.refusal !== null,
    'its lease expired: others may take over its tasks and links': shared !== null && !membership.holds(),
  }
  return {
    reasons: Object.entries(against).flatMap(([reason, holds]) => (holds ? [reason] : [])),
    keepsConnections: isAccepting,
    server: shared && standingOf(shared, membership),
  }
}

export function standingOf(
  shared: Shared,
  { member, sinceRenewed }: Pick<Membership, 'member' | 'sinceRenewed'>,
): Standing {
  const { isListening, heard } = shared.hearing()
  return {
    name: member.name,
    leaseSeconds: seconds(Math.max(0, lease - sinceRenewed())),
    pools: shared.load(),
    hints: {
      isListening,
      lagSeconds: heard && seconds(heard.lag),
      heardSecondsAgo: heard && seconds(heard.ago),
    },
  }
}

const seconds = (milliseconds: number) => Math.round(milliseconds) / 1000

interface Parts {
  data: Pick<Data, 'shared' | 'serverRuns' | 'clock' | 'store' | 'audit'>
  member: Member
  /** Address of this server; null before it listens. */
  address: () => string | null
  /** Why this server could not reach another for its terminals; null if it could, or did not try. */
  unreached: (name: string) => string | null
  load: () => { links: number; tasks: Promise<number> }
}

function ownFaults({ shared, store, audit }: Parts['data']): string[] {
  const away = shared?.fault ?? null
  // Any user may list the servers; `rsm server status` on the machine shows the address of PostgreSQL too.
  if (away !== null) return [store.readOnlyReason ?? away]
  const reasons = {
    'it refuses writes': store.readOnlyReason,
    'its audit log refuses entries': audit.refusal,
  }
  return Object.entries(reasons).flatMap(([what, why]) => (why === null ? [] : [`${what}: ${why}`]))
}

function lapsed({ isLiving, leaseUntil }: ServerSeen, now: number): string[] {
  if (isLiving) return []
  const seconds = Math.max(0, Math.round((now - Date.parse(leaseUntil)) / 1000))
  return [`its lease expired ${seconds} s ago: others take over its tasks and links`]
}

/** Servers of the store, including this one, by name (contract §12). */
export async function listServers(parts: Parts): Promise<Server[]> {
  const { data, member, address, unreached, load } = parts
  const { shared, clock } = data
  if (shared === null) {
    const { links, tasks } = load()
    return [
      {
        name: member.name,
        version: serverVersion(),
        address: address(),
        startedAt: data.serverRuns.startedAt,
        leaseUntil: null,
        links,
        tasks: await tasks,
        isThis: true,
        faults: ownFaults(data),
      },
    ]
  }
  return (await shared.servers()).map((seen) => {
    const isThis = seen.name === member.name
    const { isLiving: _, ...rest } = seen
    return {
      ...rest,
      isThis,
      faults: [isThis ? ownFaults(data) : (unreached(seen.name) ?? []), lapsed(seen, clock.now())].flat(),
    }
  })
}
