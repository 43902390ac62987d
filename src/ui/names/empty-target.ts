import { RsmError } from '../../core/errors.ts'
import type { Services } from '../../core/services.ts'
import { findCluster } from './names.ts'
import { resolveHosts, selectHosts, type TargetOptions } from './targets.ts'

type Lookup = Pick<Services, 'hosts' | 'clusters'>

const hostsOf = (count: number) => (count === 1 ? 'the only host' : `all ${count} hosts`)

async function emptyParts(services: Lookup, { hosts, clusters }: TargetOptions): Promise<string> {
  const parts: string[] = []
  for (const selector of hosts)
    if ((await selectHosts(services, selector)).length === 0) parts.push(`-w ${selector} matches no host`)
  for (const name of clusters)
    if ((await findCluster(services, name)).hostCount === 0) parts.push(`cluster ${name} has no hosts`)
  return parts.length === 0 ? 'there are no hosts' : parts.join(', and ')
}

/** Which part of a target leaves no hosts; undefined if some are left. */
async function emptiedBy(services: Lookup, options: TargetOptions): Promise<string | undefined> {
  const all = options.hosts.length + options.clusters.length === 0
  const narrowed = (tags: readonly string[], exclude: readonly string[]) =>
    resolveHosts(services, { ...options, all, tags, exclude })
  let left = await narrowed([], [])
  if (left.length === 0) return emptyParts(services, options)
  for (const at of options.tags.keys()) {
    const tagged = await narrowed(options.tags.slice(0, at + 1), [])
    if (tagged.length === 0) return `-t ${options.tags[at]} matches none of ${hostsOf(left.length)}`
    left = tagged
  }
  const spared = await narrowed(options.tags, options.exclude)
  if (spared.length > 0) return undefined
  return `-x ${options.exclude.join(' -x ')} excludes ${hostsOf(left.length)}`
}

/**
 * That a target has no hosts, and what left none: `not_found`, as a name or a tag that does not exist (contract §8: exit 5).
 * Undefined where it has some.
 */
export async function emptyTarget(services: Lookup, options: TargetOptions): Promise<RsmError | undefined> {
  const why = await emptiedBy(services, options)
  return why === undefined
    ? undefined
    : new RsmError('not_found', `nothing to run on: ${why}`, { hint: 'rsm hosts list' })
}
