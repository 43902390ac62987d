import type { HostQuery } from '../../../core/protocol/http/hosts.ts'
import type { Where } from '../../storage/ports/store.ts'
import type { Context } from '../context.ts'

/** The parts of `key:value`. */
function keyAndValue(pair: string): [string, string] {
  const colon = pair.indexOf(':')
  return [pair.slice(0, colon), pair.slice(colon + 1)]
}

/** What the query of a list asks for. */
export async function whereOf(
  { store, fleet }: Pick<Context, 'store' | 'fleet'>,
  query: HostQuery,
): Promise<Where<'hosts'>> {
  const { name, search, status, clusterId, tag, selector } = query
  const sets: (readonly number[])[] = []
  if (selector !== undefined) sets.push(await fleet.select(selector, 'selector'))
  if (clusterId !== undefined) {
    const cluster = await store.get('clusters', clusterId)
    sets.push(cluster ? await fleet.members(cluster) : [])
  }
  if (status) {
    const { hosts } = await fleet.directory()
    sets.push(hosts.flatMap((host) => (host.status === status ? [host.id] : [])))
  }
  const [first, ...others] = sets
  const narrowing = others.map((ids) => new Set(ids))
  return {
    ids: first?.filter((id) => narrowing.every((ids) => ids.has(id))),
    equals: { hostname: name?.toLowerCase() },
    contains: { fields: ['hostname', 'ip'], text: search },
    has: { tags: tag?.map(keyAndValue) },
  }
}
