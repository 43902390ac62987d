import type { Server } from '../../../core/protocol/http/server.ts'
import { serverVersion } from '../../../disk/own-release.ts'
import type { Member, ServerSeen } from '../ports/cluster.ts'
import type { Data } from '../ports/data.ts'

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
