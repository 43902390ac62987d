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
