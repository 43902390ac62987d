import { Closed, Id, Nullable, Time } from './common.ts'
import { type Static, Type } from './schema.ts'
import { Standing } from './servers.ts'

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
