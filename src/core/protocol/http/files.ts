import { Closed, Id, Line, Nullable, OpaqueId, paging, type Static, Time, Type } from './common.ts'

const Bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const Sha256 = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: '64 hexadecimal digits in lower case',
})

/** An upload; `offset` is the number of bytes on the server's disk. */
export const File = Type.Object({
  fileId: OpaqueId,
  /** Name at its source; null if not given. */
  name: Nullable(Type.String()),
  size: Nullable(Type.Integer()),
  offset: Type.Integer(),
  sha256: Nullable(Type.String()),
  isComplete: Type.Boolean(),
  isSecret: Type.Boolean(),
  createdAt: Time,
  expiresAt: Time,
})
export type File = Static<typeof File>

/** An upload in a list; `user` is null once its user is removed. */
export const Upload = Type.Object({ ...File.properties, user: Nullable(Type.String()) })
export type Upload = Static<typeof Upload>

export const UploadQuery = Closed({ ...paging, user: Type.Optional(Line(128)) })
export type UploadQuery = Static<typeof UploadQuery>

export const UploadRemoved = Type.Object({ fileId: OpaqueId })
export type UploadRemoved = Static<typeof UploadRemoved>

export const FileQuery = Closed({
  name: Type.Optional(Line(255)),
  size: Type.Optional(Bytes),
  sha256: Type.Optional(Sha256),
  secret: Type.Optional(Type.Boolean()),
})
export type FileQuery = Static<typeof FileQuery>

export const FilePartQuery = Closed({ offset: Bytes, end: Type.Optional(Type.Boolean()) })
export type FilePartQuery = Static<typeof FilePartQuery>

/** `sha256` belongs to the last part: that of the whole file, which is verified. */
export const FetchedPartQuery = Closed({
  offset: Bytes,
  end: Type.Optional(Type.Boolean()),
  sha256: Type.Optional(Sha256),
})
export type FetchedPartQuery = Static<typeof FetchedPartQuery>

export const FetchedPart = Type.Object({ offset: Type.Integer() })
export type FetchedPart = Static<typeof FetchedPart>

/** Absolute; the service refuses `..` and paths over 4,095 bytes. */
const RemotePath = Type.String({
  minLength: 1,
  maxLength: 4095,
  pattern: '^/[^\\u0000]*$',
  examples: ['/etc/app.conf'],
})
const Kind = Type.Enum(['FILE', 'TREE'])
/** Octal, with at least three digits so that no decimal number is mistaken for one. */
const Mode = Type.String({
  pattern: '^[0-7]{3,4}$',
  description: 'an octal string of 3 or 4 digits, like "0640"',
})
const Owner = Type.String({
  pattern: '^(?:[A-Za-z_][A-Za-z0-9_.-]{0,30}\\$?|[0-9]{1,10})$',
  description: 'a name or a number',
})

export const Copy = Closed({
  fileId: OpaqueId,
  path: RemotePath,
  kind: Kind,
  mode: Type.Optional(Mode),
  sourceMode: Type.Optional(Mode),
  owner: Type.Optional(Owner),
  group: Type.Optional(Owner),
  backup: Type.Optional(Type.Boolean()),
  check: Type.Optional(Type.Enum(['CHANGED', 'DIFF'])),
})
export type Copy = Static<typeof Copy>

export const Fetch = Closed({
  path: RemotePath,
  kind: Kind,
  follow: Type.Optional(Type.Boolean()),
  /** Limit per host, in bytes. */
  maxSize: Type.Optional(Bytes),
})
export type Fetch = Static<typeof Fetch>

export const Stdin = Closed({ fileId: OpaqueId })

/** Bytes per second; a lower rate would not keep a connection alive. */
export const LimitRate = Type.Integer({ minimum: 16_384, maximum: 1_099_511_627_776 })

/** The upload as it was when the task was created. */
export const TaskStdin = Type.Object({
  fileId: OpaqueId,
  name: Nullable(Type.String()),
  size: Type.Integer(),
  sha256: Type.String(),
})

export const TaskCopy = Type.Object({
  file: TaskStdin,
  path: Type.String(),
  kind: Kind,
  mode: Type.Optional(Type.String()),
  sourceMode: Type.Optional(Type.String()),
  owner: Type.Optional(Type.String()),
  group: Type.Optional(Type.String()),
  backup: Type.Optional(Type.Boolean()),
  check: Type.Optional(Type.Enum(['CHANGED', 'DIFF'])),
})

export const TaskFetch = Type.Object({
  path: Type.String(),
  kind: Kind,
  follow: Type.Optional(Type.Boolean()),
  maxSize: Type.Optional(Type.Integer()),
})

/** A file that a task fetches from one of its hosts; `size` and `sha256` are null until it is complete. */
export const TaskFile = Type.Object({
  hostId: Id,
  hostname: Type.String(),
  path: Type.String(),
  kind: Kind,
  size: Nullable(Type.Integer()),
  sha256: Nullable(Type.String()),
})
export type TaskFile = Static<typeof TaskFile>
