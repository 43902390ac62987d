/** A fault of a request body or query: `field` is a dotted path from the root (contract §1). */
export interface FieldFault {
  readonly field: string
  readonly message: string
}

export type ErrorCode =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'gone'
  | 'too_large'
  | 'media_type'
  | 'too_many'
  | 'internal'
  | 'unavailable'
  | 'unreachable'
  | 'usage'
  | 'interrupted'
  | 'timeout'

/** HTTP status of each code that a server can return (contract §1). */
const statuses = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  gone: 410,
  too_large: 413,
  media_type: 415,
  too_many: 429,
  internal: 500,
  unavailable: 503,
} as const satisfies Partial<Record<ErrorCode, number>>

/** Exit code of the command line for each code (contract §9). */
const exits: Record<ErrorCode, number> = {
  usage: 2,
  invalid: 2,
  unauthenticated: 3,
  forbidden: 3,
  unreachable: 4,
  not_found: 5,
  interrupted: 130,
  timeout: 124,
  method_not_allowed: 6,
  conflict: 6,
  gone: 6,
  too_large: 6,
  media_type: 6,
  too_many: 6,
  internal: 6,
  unavailable: 6,
}

interface ErrorDetails {
  readonly fields?: readonly FieldFault[]
  readonly hint?: string
  /** Seconds after which a retry may succeed. */
  readonly retryAfter?: number
  /** Sent as `data` of the response, so that the caller can continue. */
  readonly data?: object
  readonly cause?: unknown
}

/** The only error class; any other thrown value is a defect. */
export class RsmError extends Error {
  readonly code: ErrorCode
  readonly fields: readonly FieldFault[]
  readonly hint: string | undefined
  readonly retryAfter: number | undefined
  readonly data: object | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'RsmError'
    this.code = code
    this.fields = details.fields ?? []
    this.hint = details.hint
    this.retryAfter = details.retryAfter
    this.data = details.data
  }
}

/** Most faults that an answer lists, and that its message names, because a body can have more than anyone reads. */
export const maxListed = 100
const maxSaid = 10

/** The first faults; the last one counts the rest. */
function bounded(fields: readonly FieldFault[], total: number): readonly FieldFault[] {
  const last = fields[maxListed - 1]
  if (total <= maxListed || !last) return fields
  const listed = maxListed - 1
  return [...fields.slice(0, listed), { field: last.field, message: `and ${total - listed} more` }]
}

/** A 400 with at most 100 faults; its message names the first ones. `unlisted`: faults only counted. */
export function invalid(fields: readonly FieldFault[], unlisted = 0): RsmError {
  const total = fields.length + unlisted
  // Naming one more fault is as short as `and 1 more`.
  const said = total === maxSaid + 1 ? total : maxSaid
  const parts = fields.slice(0, said).map((fault) => `${fault.field}: ${fault.message}`)
  if (total > said) parts.push(`and ${total - said} more`)
  return new RsmError('invalid', `Validation failed: ${parts.join('; ')}`, { fields: bounded(fields, total) })
}

/** HTTP status of any thrown value; 500 if it is not an RsmError. */
export function httpStatus(error: unknown): number {
  if (!(error instanceof RsmError)) return 500
  return error.code in statuses ? statuses[error.code as keyof typeof statuses] : 500
}

/** Code for a server's status; unlisted 4xx are `invalid`, the rest `internal`. */
export function codeOfStatus(status: number): ErrorCode {
  for (const [code, known] of Object.entries(statuses)) if (known === status) return code as ErrorCode
  return status >= 400 && status < 500 ? 'invalid' : 'internal'
}

const passing: ReadonlySet<ErrorCode> = new Set(['unreachable', 'unavailable', 'internal', 'too_many'])

/** Whether a retry may succeed: network, restart, proxy, load. Anything else (401, 404, 410) is final. */
export const mendable = (error: unknown): boolean => error instanceof RsmError && passing.has(error.code)

/** First error of an AggregateError, which Node throws for all addresses of a host, with an empty message. */
export function firstError(error: unknown): unknown {
  return error instanceof AggregateError && error.errors.length > 0 ? firstError(error.errors[0]) : error
}

/** Exit code for any thrown value; 6 if it is not an RsmError. */
export function exitCode(error: unknown): number {
  return error instanceof RsmError ? exits[error.code] : 6
}
