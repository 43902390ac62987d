import { Closed, Id, Nullable, Time } from './common.ts'
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
const Pool = Type.Object({ size: Type.Integer(), busy: Type.Integer(), waiting: Type.Integer() })

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

/** `withoutOutput`: without the output of tasks and the recordings of terminal sessions. */
export const BackupQuery = Closed({ withoutOutput: Type.Optional(Type.Boolean()) })

/** What the server says of itself to who is logged in; intervals, which its agents keep to, in seconds. */
export const ServerInfo = Type.Object({
  version: Type.String(),
  serverTime: Time,
  /** When its process started. Older servers leave it out. */
  startedAt: Type.Optional(Time),
  heartbeatInterval: Type.Number(),
  metricsInterval: Type.Number(),
})
export type ServerInfo = Static<typeof ServerInfo>

/**
 * How the server is, for those who keep it. `run`: this start of it, and how far its store has come. `restore`: what proved
 * that the store is a backup which was brought back (host and agent are null where `rsm server restore` did it and said so),
 * and how much is held until `rsm server confirm-restore`; null where
 * nothing waits for that. `clock`: by how much the clock has jumped, and after how much running it is believed; null where
 * it is. Until then what it would remove for its age waits, or until `rsm server confirm-clock`.
 */
export const ServerStatus = Type.Object({
  version: Type.String(),
  serverTime: Time,
  startedAt: Time,
  run: Type.Object({ run: Type.String(), sequence: Type.Integer() }),
  restore: Type.Union([
    Type.Object({
      noticedAt: Time,
      reason: Type.String(),
      hostId: Type.Union([Id, Type.Null()]),
      agentId: Type.Union([Type.String(), Type.Null()]),
      tasks: Type.Integer(),
      executions: Type.Integer(),
    }),
    Type.Null(),
  ]),
  clock: Type.Union([
    Type.Object({ aheadSeconds: Type.Integer(), agreesInSeconds: Type.Integer() }),
    Type.Null(),
  ]),
})
export type ServerStatus = Static<typeof ServerStatus>

/** `drain`: for a load balancer that can take a server out of rotation without closing its connections. */
export const ReadyQuery = Closed({
  drain: Type.Optional(
    Type.Boolean({
      description:
        'Answer 404 instead of 503 unless the server is starting or stopping: send it no new connections, and keep the open ones',
    }),
  ),
})

/**
 * Answer of a server that takes work; `server` is null if its store is not shared. A server that takes none answers 503, or 404
 * to `drain`, with `{status: 'DOWN', reasons, server}`: a sentence for each reason.
 */
export const Ready = Type.Object({ status: Type.Literal('UP'), server: Nullable(Standing) })
