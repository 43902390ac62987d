import { streams } from '../../tasks/task.ts'
import { largestPage } from '../bounds.ts'
import { Closed, Id, OpaqueId, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

const Stream = Type.Enum([...streams])

/**
 * `after` is a cursor: the `id` of the last entry seen (contract §5). `before` reads the other way, where nothing is
 * followed: the newest entries of smaller ids, oldest first.
 */
export const LogQuery = Closed({
  hostId: Type.Optional(Id),
  follow: Type.Optional(Type.Boolean({ description: 'Stream what comes, until the task has ended' })),
  stream: Type.Optional(Stream),
  tail: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'Begin N entries before the end' }),
  ),
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The id of the last entry seen: what follows it comes',
    }),
  ),
  before: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The id of the first entry seen: the newest of what precedes it come, oldest first',
    }),
  ),
  size: Type.Optional(
    Type.Integer({ minimum: 1, maximum: largestPage, default: largestPage, description: 'Entries at most' }),
  ),
})
export type LogQuery = Static<typeof LogQuery>

/** A piece of output; `id` ascends over the whole task, `sequence` per host. */
export const LogEntry = Type.Object({
  id: Type.Integer(),
  hostId: Id,
  hostname: Type.String(),
  stream: Stream,
  sequence: Type.Integer(),
  timestamp: Time,
  /** Absent of what the script itself wrote. */
  phase: Type.Optional(Type.Enum(['VERIFY', 'ROLLBACK'])),
  data: Type.String(),
})
export type LogEntry = Static<typeof LogEntry>

/** Hosts of which more of their file has passed the server: how many bytes of it, in all (contract §13). */
export const CarriedBytes = Type.Object({
  hosts: Type.Array(Type.Object({ hostId: Id, bytes: Type.Integer() })),
})
export type CarriedBytes = Static<typeof CarriedBytes>

/** `next` goes back as `after`; `previous` as `before`, and is 0 where nothing precedes. A page may be empty with more to come. */
export const LogPage = Type.Object({
  taskId: OpaqueId,
  entries: Type.Array(LogEntry),
  next: Type.Integer(),
  previous: Type.Integer(),
})
export type LogPage = Static<typeof LogPage>
