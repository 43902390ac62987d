import { Closed, Id, Nullable, type Static, Time, Type } from './common.ts'

/**
 * A server of the store. `leaseUntil`: until then no other server takes over its tasks and links; null if it does not
 * share its store. `links`: linked agents. `tasks`: running tasks that it owns. `isThis`: the server that answers.
 * `faults`: its faults, a sentence each.
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

/** Connections to PostgreSQL for one purpose: the most allowed, those in use, and calls waiting for one. */
const Pool = Type.Object({ size: Type.Integer(), busy: Type.Integer(), waiting: Type.Integer() })

/**
 * State of a server within its store. `leaseSeconds`: time until others may take over its tasks and links; 0 if they
 * may. `pools`: by purpose of the connections. `hints`: whether it listens to other servers; `lagSeconds`: how long a
 * hint takes through PostgreSQL and back to its sender; `heardSecondsAgo`: when the last one arrived; both null if
 * none arrived lately.
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

/** Shown to any user who is logged in; intervals of its agents, in seconds. */
export const ServerInfo = Type.Object({
  version: Type.String(),
  serverTime: Time,
  /** Start of its process. Absent from older servers. */
  startedAt: Type.Optional(Time),
  heartbeatInterval: Type.Number(),
  metricsInterval: Type.Number(),
})
export type ServerInfo = Static<typeof ServerInfo>

/**
 * State of the server, for its administrators. `run`: this start of it, and the position of its store. `restore`:
 * evidence that the store was restored from a backup (host and agent are null if `rsm server restore` recorded it),
 * and how much is held until `rsm server confirm-restore`; null if nothing is held. `clock`: how far the clock has
 * jumped, and for how long the server must run until it is trusted; null if it is trusted. Until then, or until `rsm
 * server confirm-clock`, nothing is deleted for its age.
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
        'Answer 404 instead of 503 unless the server is starting or stopping. 404: send no new connections, but keep open ones',
    }),
  ),
})

/**
 * Answer of a server that accepts work; `server` is null if its store is not shared. One that does not accept work
 * answers 503, or 404 to `drain`, with `{status: 'DOWN', reasons, server}`: a sentence for each reason.
 */
export const Ready = Type.Object({ status: Type.Literal('UP'), server: Nullable(Standing) })
