import { RsmError } from '../core/errors.ts'
import { unknownName } from '../core/nearest.ts'
import type { Cluster } from '../core/protocol/http/clusters.ts'
import type { Page } from '../core/protocol/http/common.ts'
import type { Host } from '../core/protocol/http/hosts.ts'
import type { Script } from '../core/protocol/http/scripts.ts'
import type { Services } from '../core/services.ts'
import { allPages } from './pages.ts'

type Lister<T> = (query: { page: number; size: number }) => Promise<Page<T>>

/** The one with this name (case is ignored), else with this id; `not_found` names the nearest. */
async function findNamed<T extends { id: number; name: string }>(
  kind: string,
  wanted: string,
  list: Lister<T>,
): Promise<T> {
  const { content } = await allPages(list, {})
  const found =
    content.find((each) => each.name.toLowerCase() === wanted.toLowerCase()) ??
    content.find((each) => String(each.id) === wanted)
  if (found !== undefined) return found
  const names = content.map((each) => each.name)
  throw new RsmError('not_found', unknownName(kind, wanted, names), { hint: `rsm ${kind}s list` })
}

export function findCluster(services: Pick<Services, 'clusters'>, name: string): Promise<Cluster> {
  return findNamed('cluster', name, (query) => services.clusters.list(query))
}

export function findScript(services: Pick<Services, 'scripts'>, name: string): Promise<Script> {
  return findNamed('script', name, (query) => services.scripts.list(query))
}

/** The one host of this name; `@id:17` names it by its id. */
export async function findHost(services: Pick<Services, 'hosts'>, name: string): Promise<Host> {
  const page = await services.hosts.list({ selector: name, size: 2 })
  const [host] = page.content
  if (host === undefined)
    throw new RsmError('not_found', unknownName('host', name, []), { hint: 'rsm hosts list' })
  if (page.totalElements > 1)
    throw new RsmError('usage', `${name} names ${page.totalElements} hosts; name one`, {
      hint: `rsm hosts list -w '${name}'`,
    })
  return host
}
