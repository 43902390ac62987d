import { Closed, Id, Nullable, named, paging, type Static, Text, Time, Type } from './common.ts'

/** Names appear in selectors as `@name`, so they contain none of the selector's own characters (contract §8). */
const ClusterName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: '^[A-Za-z0-9._ -]*$',
  description: 'made of letters, digits, spaces, dots, dashes and underscores',
  format: 'not-blank',
})
export const HostIds = Type.Array(Id, { maxItems: 100_000 })
export const Selector = Type.String({ minLength: 1, maxLength: 65_536, format: 'not-blank' })

export const ClusterCreate = Closed(
  {
    name: ClusterName,
    description: Type.Optional(Text(4096)),
    hostIds: Type.Optional(HostIds),
    selector: Type.Optional(Selector),
  },
  { examples: [{ name: 'web', description: 'All web servers', selector: '@role:web' }] },
)
export type ClusterCreate = Static<typeof ClusterCreate>

export const ClusterPatch = Closed(
  {
    name: Type.Optional(ClusterName),
    description: Type.Optional(Nullable(Text(4096))),
    hostIds: Type.Optional(Nullable(HostIds)),
    selector: Type.Optional(Nullable(Selector)),
  },
  { examples: [{ hostIds: [7, 8], selector: null }] },
)
export type ClusterPatch = Static<typeof ClusterPatch>

export const ClusterQuery = Closed({
  ...paging,
  ...named,
  search: Type.Optional(Type.String({ maxLength: 128 })),
})
export type ClusterQuery = Static<typeof ClusterQuery>

/** `hostIds` are the current members, also for a dynamic cluster. */
export const Cluster = Type.Object({
  id: Id,
  name: Type.String(),
  description: Type.String(),
  hostIds: Type.Array(Id),
  selector: Nullable(Type.String()),
  hostCount: Type.Integer(),
  createdAt: Time,
  updatedAt: Time,
})
export type Cluster = Static<typeof Cluster>

/** Longest command-line argument on Linux. */
const longestArgument = 131_072
const Hosts = Type.String({ minLength: 1, maxLength: longestArgument, format: 'not-blank' })
/** Twice the largest fleet. */
const mostHosts = 20_000
const ClusterOfTarget = Type.String({ minLength: 1, maxLength: 128 })
const Tag = Type.String({ minLength: 1, maxLength: 512 })
const mostNames = 1000

/**
 * Hosts of a task (contract §4): `hosts` and `clusters` together, or `all`; only those with all `tags`, without
 * `exclude`. Or exactly one of `selector`, `hostIds` and `clusterId` instead.
 */
export const Target = Closed({
  hosts: Type.Optional(Type.Array(Hosts, { minItems: 1, maxItems: mostHosts, description: 'Selectors' })),
  clusters: Type.Optional(
    Type.Array(ClusterOfTarget, { minItems: 1, maxItems: mostNames, description: 'Names' }),
  ),
  tags: Type.Optional(
    Type.Array(Tag, { minItems: 1, maxItems: mostNames, description: 'KEY=VALUE or key:value' }),
  ),
  exclude: Type.Optional(Type.Array(Hosts, { maxItems: mostHosts, description: 'Selectors' })),
  all: Type.Optional(Type.Boolean({ description: 'Every host; not with hosts or clusters' })),
  selector: Type.Optional(Selector),
  hostIds: Type.Optional(HostIds),
  clusterId: Type.Optional(Id),
})
export type Target = Static<typeof Target>

export const HostSelect = Closed({ target: Target }, { examples: [{ target: { tags: ['role=web'] } }] })
export type HostSelect = Static<typeof HostSelect>
