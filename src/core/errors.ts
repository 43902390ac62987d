/** One fault of a request body or query: `field` is a dotted path from the root (contract §1). */
export interface FieldFault {
  readonly field: string
  readonly message: string
}

/** The closed set of ways in which anything of rsm can fail. */
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

/** HTTP status of each code that a server can answer with (contract §1). */
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
  /** Every fault of the input, all at once. */
  readonly fields?: readonly FieldFault[]
  /** What to type or do next. */
  readonly hint?: string
  /** Seconds after which a retry may succeed. */
  readonly retryAfter?: number
  /** What the caller goes on with, as the `data` of the answer. */
  readonly data?: object
  readonly cause?: unknown
}

/** The one error class: what was tried, what happened, what to do. Anything else that is thrown is a defect. */
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

/** How many faults an answer lists, and how many its message says: a body can have more of them than anyone reads. */
export const maxListed = 100
const maxSaid = 10

/** The first faults; the last tells how many there are beside them. */
function bounded(fields: readonly FieldFault[], total: number): readonly FieldFault[] {
  const last = fields[maxListed - 1]
  if (total <= maxListed || !last) return fields
  const listed = maxListed - 1
  return [...fields.slice(0, listed), { field: last.field, message: `and ${total - listed} more` }]
}

/**
 * A 400 with its faults, at most 100 of them; the message sums them up. `unlisted`: further faults that the caller only
 * counted, because it has given as many as are listed.
 */
export function invalid(fields: readonly FieldFault[], unlisted = 0): RsmError {
  const total = fields.length + unlisted
  // One more is said as briefly as that there is one more.
  const said = total === maxSaid + 1 ? total : maxSaid
  const parts = fields.slice(0, said).map((fault) => `${fault.field}: ${fault.message}`)
  if (total > said) parts.push(`and ${total - said} more`)
  return new RsmError('invalid', `Validation failed: ${parts.join('; ')}`, { fields: bounded(fields, total) })
}

/** The HTTP status for any thrown value; what is not an RsmError is a 500. */
export function httpStatus(error: unknown): number {
  if (!(error instanceof RsmError)) return 500
  return error.code in statuses ? statuses[error.code as keyof typeof statuses] : 500
}

/** The code that a server's status stands for; unlisted 4xx are `invalid`, the rest `internal`. */
export function codeOfStatus(status: number): ErrorCode {
  for (const [code, known] of Object.entries(statuses)) if (known === status) return code as ErrorCode
  return status >= 400 && status < 500 ? 'invalid' : 'internal'
}

const passing: ReadonlySet<ErrorCode> = new Set(['unreachable', 'unavailable', 'internal', 'too_many'])

/** Whether waiting may mend it: the network, a restart, a proxy, load; anything else (401, 404, 410) is final. */
export const mendable = (error: unknown): boolean => error instanceof RsmError && passing.has(error.code)

/** The first error of an AggregateError: Node makes one for all addresses of a host, with an empty message. */
export function firstError(error: unknown): unknown {
  return error instanceof AggregateError && error.errors.length > 0 ? firstError(error.errors[0]) : error
}

/** The exit code for any thrown value; what is not an RsmError is 6. */
export function exitCode(error: unknown): number {
  return error instanceof RsmError ? exits[error.code] : 6
}
