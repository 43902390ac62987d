import type { Standing } from '../../../core/protocol/http/servers.ts'
import { lease, type Shared } from '../ports/cluster.ts'
import type { Data } from '../ports/data.ts'
import type { Membership } from './membership.ts'

/** What `GET /api/ready` says, and so whether work is taken: there is no reason against it. */
export interface Readiness {
  readonly reasons: readonly string[]
  /** Whether open connections stay: true unless the server is starting or stopping. */
  readonly keepsConnections: boolean
  /** Null where the store is this server's alone. */
  readonly server: Standing | null
}

interface Parts {
  readonly data: Pick<Data, 'store' | 'audit' | 'shared'>
  readonly membership: Pick<Membership, 'member' | 'sinceRenewed' | 'holds'>
  readonly isAccepting: boolean
}

const seconds = (milliseconds: number) => Math.round(milliseconds) / 1000

/** How this server stands among those of its store. */
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

/** Anybody may ask: it names no paths and addresses, which `rsm server status` shows on the machine. */
export function readinessOf({ data: { store, audit, shared }, membership, isAccepting }: Parts): Readiness {
  const isAway = (shared?.fault ?? null) !== null
  const against = {
    'it is starting or stopping': !isAccepting,
    'PostgreSQL cannot be reached': isAway,
    // Neither can they without PostgreSQL, which says it all.
    'its store takes no writes': !isAway && store.readOnlyReason !== null,
    'its audit log takes no entries': !isAway && audit.refusal !== null,
    'its lease is over: others may take over its tasks and links': shared !== null && !membership.holds(),
  }
  return {
    reasons: Object.entries(against).flatMap(([reason, holds]) => (holds ? [reason] : [])),
    keepsConnections: isAccepting,
    server: shared && standingOf(shared, membership),
  }
}
