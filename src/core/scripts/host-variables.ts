import { sizeOfVariable } from './params.ts'

/** What the server knows a host by. */
export interface KnownHost {
  readonly id: number
  readonly hostname: string
  readonly tags: Readonly<Record<string, string>>
  /** Names. */
  readonly clusters: readonly string[]
}

/** Bytes of all of them together: they travel with each script, beside its params, and Linux bounds what a program starts with. */
const maxAllBytes = 64 * 1024

/** Tags whose keys are names in upper case; two that would have the same name have none. */
function tagVariables(tags: KnownHost['tags']): [name: string, value: string][] {
  const named = Object.entries(tags).map(([key, value]) => [`RSM_TAG_${key.toUpperCase()}`, value] as const)
  const count = new Map<string, number>()
  for (const [name] of named) count.set(name, (count.get(name) ?? 0) + 1)
  return named.flatMap(([name, value]) =>
    /^[A-Z0-9_]+$/.test(name) && count.get(name) === 1 ? [[name, value]] : [],
  )
}

/** What a script is told of its host, as environment variables. What goes past 64 KiB is left out, tags by themselves first. */
export function hostVariables({ id, hostname, tags, clusters }: KnownHost): Record<string, string> {
  const all: [string, string][] = [
    ['RSM_HOST', hostname],
    ['RSM_HOST_ID', String(id)],
    ['RSM_CLUSTERS', clusters.join(',')],
    ['RSM_TAGS', JSON.stringify(tags)],
    ...tagVariables(tags),
  ]
  let room = maxAllBytes
  const kept = all.filter(([name, value]) => {
    const size = sizeOfVariable(name, value)
    if (size > room) return false
    room -= size
    return true
  })
  return Object.fromEntries(kept)
}
