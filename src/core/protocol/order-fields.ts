import { longestInterval, mostRetries } from '../tasks/gates.ts'
import { list, number, object, oneOf, optional, text, truth } from './shape.ts'

const bytes = number({ integer: true, minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const id = text({ pattern: /^[A-Za-z0-9_-]{1,64}$/ })

/** A file of the server, as an agent fetches it (`GET /api/agent/files/{fileId}`) and checks it by (contract §13). */
export const file = object({ fileId: id, size: bytes, sha256: text({ pattern: /^[0-9a-f]{64}$/ }) })
/** Absolute, without `..`; `%h` and `%%` are replaced already. */
const path = text({ pattern: /^\/[^\0]*$/, maxLength: 4095 })
const fileKind = oneOf('FILE', 'TREE')
const fileMode = text({ pattern: /^[0-7]{3,4}$/ })
const fileOwner = text({ maxLength: 32 })

/** A file of the server, and how it is put in place on a host. */
export const copy = object({
  file,
  path,
  /** TREE: the file is a tar whose entries go below `path`. */
  kind: fileKind,
  /** Octal. Absent: of the file replaced, else `sourceMode`, else of the tar's entry, else 0644. */
  mode: optional(fileMode),
  sourceMode: optional(fileMode),
  /** Names or numbers. Absent: of the file replaced, else of who writes. */
  owner: optional(fileOwner),
  group: optional(fileOwner),
  /** The file replaced stays as `NAME.rsm-<taskId>`. */
  backup: optional(truth),
  /** Nothing is written: says whether it would be, with DIFF also how the text differs. */
  check: optional(oneOf('CHANGED', 'DIFF')),
})

/** Files of a host that come to the server, by `PUT /api/agent/tasks/{taskId}/file` (contract §13). */
export const fetch = object({
  path,
  /** TREE: it comes as a tar. */
  kind: fileKind,
  /** What a symlink stands for is read; else it is refused. */
  follow: optional(truth),
  /** Bytes; a larger one is refused. */
  maxSize: bytes,
})

/** The release that an agent upgrades to: a build for each architecture, as its maker has signed it (contract §10). */
export const upgrade = object({
  version: text({ maxLength: 128 }),
  allowDowngrade: optional(truth),
  builds: list(
    object({
      arch: text({ maxLength: 16 }),
      size: bytes,
      sha256: text({ pattern: /^[0-9a-f]{64}$/ }),
      signature: text({ maxLength: 128 }),
    }),
    16,
  ),
})

export const scriptType = oneOf('BASH', 'PYTHON', 'POWERSHELL')
const gate = { script: text(), scriptType, timeout: number({ minimum: 0 }) }

/** Scripts that run after the first one, and decide with it how the execution ends (contract §15). */
export const rollback = object(gate)
export const verify = object({
  ...gate,
  retries: number({ integer: true, minimum: 0, maximum: mostRetries }),
  intervalSeconds: number({ minimum: 0, maximum: longestInterval }),
})
