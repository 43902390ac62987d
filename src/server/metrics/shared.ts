import type { Registry } from 'prom-client'
import type { Standing } from '../../core/protocol/http/servers.ts'
import type { PoolLoad } from '../storage/ports/cluster.ts'
import { lookedAt } from './looked-at.ts'

/** A server on a store that several share. */
export interface SharedLoad extends Standing {
  hasFault: boolean
}

/** Registers what there is to see of one server among several; `look` answers null where it has its store to itself. */
export function registerShared(registry: Registry, look: () => SharedLoad | null): void {
  const { gauge, gauges } = lookedAt(registry)
  const poolsBy = (part: keyof PoolLoad) => () => {
    const pools = look()?.pools
    return pools ? Object.fromEntries(Object.entries(pools).map(([pool, its]) => [pool, its[part]])) : null
  }
  gauges(
    'rsm_server_info',
    'Always 1; the name of this server is in the label; only with --store.',
    'name',
    () => {
      const shared = look()
      return shared && { [shared.name]: 1 }
    },
  )
  gauge('rsm_store_fault', '1 while PostgreSQL cannot be reached; only with --store.', () => {
    const shared = look()
    return shared && Number(shared.hasFault)
  })
  gauge(
    'rsm_lease_seconds',
    'Until other servers may take over the tasks and links of this one; only with --store.',
    () => look()?.leaseSeconds ?? null,
  )
  gauges(
    'rsm_store_connections',
    'Connections to PostgreSQL that are in use, by pool; only with --store.',
    'pool',
    poolsBy('busy'),
  )
  gauges(
    'rsm_store_waiting',
    'Calls that wait for a connection to PostgreSQL, by pool; only with --store.',
    'pool',
    poolsBy('waiting'),
  )
  gauge(
    'rsm_hint_lag_seconds',
    'How long a hint takes from this server through PostgreSQL back to it; only with --store.',
    () => look()?.hints.lagSeconds ?? null,
  )
}
