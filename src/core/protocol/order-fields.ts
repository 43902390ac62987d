import { longestInterval, mostRetries } from '../tasks/gates.ts'
import { list, number, object, oneOf, optional, text, truth } from './shape.ts'

const bytes = number({ integer: true, minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const id = text({ pattern: /^[A-Za-z0-9_-]{1,64}$/ })

/** A file of the server, as an agent fetches (`GET /api/agent/files/{fileId}`) and verifies it (contract §13). */
export const file = object({ fileId: id, size: bytes, sha256: text({ pattern: /^[0-9a-f]{64}$/ }) })
/** Absolute, without `..`; `%h` and `%%` are already expanded. */
const path = text({ pattern: /^\/[^\0]*$/, maxLength: 4095 })
const fileKind = oneOf('FILE', 'TREE')
const fileMode = text({ pattern: /^[0-7]{3,4}$/ })
const fileOwner = text({ maxLength: 32 })

export const copy = object({
  file,
  path,
  /** TREE: the file is a tar whose entries go below `path`. */
  kind: fileKind,
  /** Octal. Default: mode of the replaced file, else `sourceMode`, else that of the tar's entry, else 0644. */
  mode: optional(fileMode),
  sourceMode: optional(fileMode),
  /** Names or numbers. Default: owner and group of the replaced file, else of the user that writes. */
  owner: optional(fileOwner),
  group: optional(fileOwner),
  /** Keeps the replaced file as `NAME.rsm-<taskId>`. */
  backup: optional(truth),
  /** Writes nothing, only reports whether it would; with DIFF also how the text differs. */
  check: optional(oneOf('CHANGED', 'DIFF')),
})

/** Files of a host, sent to the server by `PUT /api/agent/tasks/{taskId}/file` (contract §13). */
export const fetch = object({
  path,
  /** TREE: sent as a tar. */
  kind: fileKind,
  /** Reads the target of a symlink; otherwise a symlink is refused. */
  follow: optional(truth),
  /** Bytes; anything larger is refused. */
  maxSize: bytes,
})

/** Release that an agent upgrades to: a build per architecture, signed by its maker (contract §10). */
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

/** Scripts that run after the main one and decide with it how the execution ends (contract §15). */
export const rollback = object(gate)
export const verify = object({
  ...gate,
  retries: number({ integer: true, minimum: 0, maximum: mostRetries }),
  intervalSeconds: number({ minimum: 0, maximum: longestInterval }),
})
