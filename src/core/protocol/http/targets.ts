import { HostIds, Selector } from './clusters.ts'
import { Closed, Id, type Static, Type } from './common.ts'

/** Longest command-line argument on Linux. */
const longestArgument = 131_072
const Hosts = Type.String({ minLength: 1, maxLength: longestArgument, format: 'not-blank' })
/** Twice the largest fleet. */
const mostHosts = 20_000
const Cluster = Type.String({ minLength: 1, maxLength: 128 })
const Tag = Type.String({ minLength: 1, maxLength: 512 })
const mostNames = 1000

/**
 * Hosts of a task (contract §4): `hosts` and `clusters` together, or `all`; only those with all `tags`, without
 * `exclude`. Or exactly one of `selector`, `hostIds` and `clusterId` instead.
 */
export const Target = Closed({
  hosts: Type.Optional(Type.Array(Hosts, { minItems: 1, maxItems: mostHosts, description: 'Selectors' })),
  clusters: Type.Optional(Type.Array(Cluster, { minItems: 1, maxItems: mostNames, description: 'Names' })),
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
