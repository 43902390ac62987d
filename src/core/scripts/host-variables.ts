import { sizeOfVariable } from './params.ts'

export interface KnownHost {
  readonly id: number
  readonly hostname: string
  readonly tags: Readonly<Record<string, string>>
  /** Names. */
  readonly clusters: readonly string[]
}

/** Most bytes of all variables: they are sent with each script, and Linux limits the environment of a program. */
const maxAllBytes = 64 * 1024

/** Variables of tags whose upper-case keys are valid names; keys that map to the same name get none. */
function tagVariables(tags: KnownHost['tags']): [name: string, value: string][] {
  const named = Object.entries(tags).map(([key, value]) => [`RSM_TAG_${key.toUpperCase()}`, value] as const)
  const count = new Map<string, number>()
  for (const [name] of named) count.set(name, (count.get(name) ?? 0) + 1)
  return named.flatMap(([name, value]) =>
    /^[A-Z0-9_]+$/.test(name) && count.get(name) === 1 ? [[name, value]] : [],
  )
}

/** Environment variables that describe the host to a script. Beyond 64 KiB, single tags are left out first. */
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
