import { Nullable, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

/**
 * One of the servers of a store. `leaseUntil`: until then nobody takes over its tasks and links; null for one that has its store
 * to itself. `links`: agents that are linked to it; `tasks`: running ones whose plans it carries out. `isThis`: whether it is the one that answers.
 * `faults`: what is wrong with it, a sentence each.
 */
export const Server = Type.Object({
  name: Type.String(),
  version: Type.String(),
  address: Nullable(Type.String()),
  startedAt: Time,
  leaseUntil: Nullable(Time),
  links: Type.Integer(),
  tasks: Type.Integer(),
  isThis: Type.Boolean(),
  faults: Type.Array(Type.String()),
})
export type Server = Static<typeof Server>

/** Connections to PostgreSQL for one purpose: how many there may be, how many are in use, and how many calls wait for one. */
export const Pool = Type.Object({ size: Type.Integer(), busy: Type.Integer(), waiting: Type.Integer() })

/**
 * How a server stands among those of its store. `leaseSeconds`: until others may take over its tasks and links; 0 when they may.
 * `pools`: by what their connections are for. `hints`: whether it listens to other servers; how long a hint takes through
 * PostgreSQL back to the server that sent it, and how long ago one did, both null where none did lately.
 */
export const Standing = Type.Object({
  name: Type.String(),
  leaseSeconds: Type.Number(),
  pools: Type.Record(Type.String(), Pool),
  hints: Type.Object({
    isListening: Type.Boolean(),
    lagSeconds: Nullable(Type.Number()),
    heardSecondsAgo: Nullable(Type.Number()),
  }),
})
export type Standing = Static<typeof Standing>
