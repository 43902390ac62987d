import { invalid } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/clusters.ts'
import { parseSelector, type Selector } from '../../core/selector/parse.ts'
import { parseTarget, whyEmpty } from '../../core/selector/target.ts'
import { matchesNone, unknownName } from '../../core/text/nearest.ts'
import { runInSlices } from '../hosts/fleet.ts'
import { unknownHosts } from './clusters.ts'
import type { Context } from './context.ts'

interface Resolved {
  /** Unique, in the order of the plan. */
  hostIds: number[]
  clusterId: number | null
}

interface Selected {
  selector: Selector
  /** Its field in the request. */
  field: string
}

/** Selector of a target; undefined if the target has ids. Throws `invalid` if it has none or conflicting parts. */
function selectedBy({ hostIds, clusterId, selector, ...named }: Target, field: string): Selected | undefined {
  const isNamed = Object.values(named).some((part) => part !== undefined)
  const given = [hostIds, clusterId, selector].filter((one) => one !== undefined).length + Number(isNamed)
  const { hosts, clusters, tags, all = false } = named
  if (given !== 1 || (isNamed && !all && !hosts && !clusters && !tags)) {
    const message =
      'give hosts, clusters, tags or all, or exactly one of selector, hostIds and clusterId instead'
    throw invalid([{ field: field || 'target', message }])
  }
  if (isNamed) return { selector: parseTarget(named, field), field }
  const inside = `${field}.selector`
  return selector === undefined ? undefined : { selector: parseSelector(selector, inside), field: inside }
}

/** Hosts of a target, possibly none; faults name `field`. `awaits`: as in `Fleet.select`. Throws `invalid`. */
export async function resolveTarget(
  context: Context,
  target: Target,
  field: string,
  awaits = false,
): Promise<Resolved> {
  const { store, fleet } = context
  const { hostIds, clusterId = 0 } = target
  const selected = selectedBy(target, field)
  if (selected)
    return { hostIds: await fleet.select(selected.selector, selected.field, awaits), clusterId: null }
  const dot = field ? `${field}.` : ''
  if (hostIds !== undefined) {
    const faults = await unknownHosts(context, hostIds, `${dot}hostIds`)
    if (faults.length > 0) throw invalid(faults)
    return { hostIds: [...new Set(hostIds)], clusterId: null }
  }
  const cluster = await store.get('clusters', clusterId)
  if (!cluster)
    throw invalid([{ field: `${dot}clusterId`, message: unknownName('cluster', String(clusterId), []) }])
  return { hostIds: await fleet.targets(cluster, `${dot}clusterId`, awaits), clusterId }
}

/** Why a valid target has no hosts, if known. */
async function emptyReason({ store, fleet }: Context, target: Target): Promise<string | null> {
  const selected = selectedBy(target, '')
  if (selected) return runInSlices(whyEmpty(selected.selector, await fleet.directory()))
  const cluster = await store.get('clusters', target.clusterId ?? 0)
  return cluster ? `cluster ${cluster.name} has no hosts` : null
}

/** Hosts of a target. Throws `invalid` like `resolveTarget`, and if there are none. */
export async function hostsOf(
  context: Context,
  target: Target,
  targetField: string,
  awaits = false,
): Promise<Resolved> {
  const resolved = await resolveTarget(context, target, targetField, awaits)
  if (resolved.hostIds.length > 0) return resolved
  const field = target.hostIds
    ? [targetField, 'hostIds'].filter(Boolean).join('.')
    : targetField || 'clusterId'
  const reason = await emptyReason(context, target)
  throw invalid([{ field, message: reason === null ? matchesNone : `${matchesNone}: ${reason}` }])
}
