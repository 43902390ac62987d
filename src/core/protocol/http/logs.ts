import { streams } from '../../tasks/task.ts'
import { largestPage } from '../bounds.ts'
import { Closed, Id, OpaqueId, type Static, Time, Type } from './common.ts'

const Stream = Type.Enum([...streams])

/**
 * `after` is a cursor: the `id` of the last entry seen (contract §5). `before` pages backwards, without `follow`: the
 * newest entries with smaller ids, oldest first.
 */
export const LogQuery = Closed({
  hostId: Type.Optional(Id),
  follow: Type.Optional(Type.Boolean({ description: 'Stream new output until the task ends' })),
  stream: Type.Optional(Stream),
  tail: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000, description: 'Start N entries before the end' }),
  ),
  after: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Id of the last entry seen: returns later entries',
    }),
  ),
  before: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Id of the first entry seen: returns the newest of the earlier entries, oldest first',
    }),
  ),
  size: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: largestPage,
      default: largestPage,
      description: 'Maximum number of entries',
    }),
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
  /** Absent for output of the script itself. */
  phase: Type.Optional(Type.Enum(['VERIFY', 'ROLLBACK'])),
  data: Type.String(),
})
export type LogEntry = Static<typeof LogEntry>

/** Hosts whose file transfer progressed, with all bytes that passed the server so far (contract §13). */
export const CarriedBytes = Type.Object({
  hosts: Type.Array(Type.Object({ hostId: Id, bytes: Type.Integer() })),
})
export type CarriedBytes = Static<typeof CarriedBytes>

/** Pass `next` as `after`, `previous` (0 at the start) as `before`. An empty page need not be the last. */
export const LogPage = Type.Object({
  taskId: OpaqueId,
  entries: Type.Array(LogEntry),
  next: Type.Integer(),
  previous: Type.Integer(),
})
export type LogPage = Static<typeof LogPage>
