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

/** HTTP status of each code that a server can answer with (seed "Errors", contract §1). */
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
  readonly cause?: unknown
}

/** The one error class: what was tried, what happened, what to do. Anything else that is thrown is a defect. */
export class RsmError extends Error {
  readonly code: ErrorCode
  readonly fields: readonly FieldFault[]
  readonly hint: string | undefined
  readonly retryAfter: number | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'RsmError'
    this.code = code
    this.fields = details.fields ?? []
    this.hint = details.hint
    this.retryAfter = details.retryAfter
  }
}

/** A 400 with its faults; the message sums them up. */
export function invalid(fields: readonly FieldFault[]): RsmError {
  const summary = fields.map((fault) => `${fault.field}: ${fault.message}`).join('; ')
  return new RsmError('invalid', `Validation failed: ${summary}`, { fields })
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

/** The exit code for any thrown value; what is not an RsmError is 6. */
export function exitCode(error: unknown): number {
  return error instanceof RsmError ? exits[error.code] : 6
}
