import { Nullable, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

/**
 * One of the servers of a store. `leaseUntil`: until then nobody takes over its tasks and links; null for one that has its store
 * to itself. `links`: agents that are linked to it; `tasks`: running ones whose plans it carries out. `isThis`: whether it is the one that answers.
 * `faults`: what is wrong with it, a sentence each.
 */
export const Server = Type.Object(
  {
    name: Type.String(),
    version: Type.String(),
    address: Nullable(Type.String()),
    startedAt: Time,
    leaseUntil: Nullable(Time),
    links: Type.Integer(),
    tasks: Type.Integer(),
    isThis: Type.Boolean(),
    faults: Type.Array(Type.String()),
  },
  {
    examples: [
      {
        name: 'rsm1',
        version: '0.1.0',
        address: 'https://10.0.0.7:18080',
        startedAt: '2026-03-01T04:00:07.118Z',
        leaseUntil: '2026-03-02T09:30:21.020Z',
        links: 1204,
        tasks: 2,
        isThis: true,
        faults: [],
      },
    ],
  },
)
export type Server = Static<typeof Server>
