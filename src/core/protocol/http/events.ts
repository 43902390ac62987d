import { Cluster } from './clusters.ts'
import { Closed, Id, type Static, Time, Type } from './common.ts'
import { Host } from './hosts.ts'
import { TaskSummary } from './tasks.ts'

export const eventTypes = ['host', 'task', 'cluster'] as const
export const EventType = Type.Enum([...eventTypes])
export type EventType = Static<typeof EventType>

/** Position in the stream: the server's run that numbered it, and the number. */
export const EventId = Type.String({ pattern: '^[0-9a-f]{12}-(0|[1-9][0-9]{0,14})$' })

/** `after` is the `id` of the last event seen; `type` may repeat and filters the stream. */
export const EventQuery = Closed({
  type: Type.Optional(Type.Array(EventType, { minItems: 1, maxItems: 16 })),
  after: Type.Optional(EventId),
})
export type EventQuery = Static<typeof EventQuery>

export const changes = ['created', 'updated', 'removed'] as const
export type Change = (typeof changes)[number]
const Kept = Type.Enum(['created', 'updated'])
const Removed = Type.Literal('removed')

/** Heartbeats and metrics alone cause no event; the next one has the newest. `at`: when it was emitted. */
export const HostEvent = Type.Union([
  Type.Object({ change: Kept, at: Time, host: Host }),
  Type.Object({ change: Removed, at: Time, host: Type.Object({ id: Id }) }),
])
export type HostEvent = Static<typeof HostEvent>

/** `data` of `task`: it was created, its counts changed, or it ended; never its output. */
export interface TaskEvent {
  change: 'created' | 'updated'
  at: string
  task: TaskSummary
}
export const TaskEvent = Type.Object({ change: Kept, at: Time, task: TaskSummary })

/** `data` of `cluster`; a change of its members is an event, whatever caused it. */
export const ClusterEvent = Type.Union([
  Type.Object({ change: Kept, at: Time, cluster: Cluster }),
  Type.Object({ change: Removed, at: Time, cluster: Type.Object({ id: Id }) }),
])
export type ClusterEvent = Static<typeof ClusterEvent>

/** `data` of `ready`, the first event of every stream. */
export const ReadyEvent = Type.Object({ id: EventId })
export type ReadyEvent = Static<typeof ReadyEvent>

/** Why a stream cannot resume at an id: of an earlier run, no longer kept, or never issued. */
export const resetReasons = ['RESTARTED', 'BEHIND', 'UNKNOWN'] as const
/** `data` of `reset`: reload the current state; events continue from here. */
export const ResetEvent = Type.Object({ reason: Type.Enum([...resetReasons]), id: EventId })
export type ResetEvent = Static<typeof ResetEvent>
