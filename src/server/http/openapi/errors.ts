import { type ErrorCode, httpStatus, RsmError } from '../../../core/errors.ts'
import type { Operation } from '../operation.ts'
import type { Schema } from './components.ts'

export type ResponseErrorCode = Exclude<
  ErrorCode,
  'unreachable' | 'usage' | 'interrupted' | 'timeout' | 'internal' | 'method_not_allowed'
>

interface ErrorResponse {
  name: string
  description: string
  message: string
  headers?: Readonly<Record<string, string>>
}

const retryAfter = { 'Retry-After': 'Seconds after which to retry' }

const errorResponses: Record<ResponseErrorCode, ErrorResponse> = {
  invalid: {
    name: 'Invalid',
    description: 'The request is malformed or has invalid fields: `errors` lists all of them',
    message: 'Validation failed: hostname: must not be blank',
  },
  unauthenticated: {
    name: 'Unauthenticated',
    description:
      'The token is missing, unknown, expired or revoked; at login, the name or the password is wrong',
    message: 'This token is unknown, has expired or was revoked',
    headers: { 'WWW-Authenticate': 'Required kind of credential; not at login' },
  },
  forbidden: {
    name: 'Forbidden',
    description: 'The caller lacks the required right',
    message: 'you are vera (VIEWER); this requires OPERATOR',
  },
  not_found: {
    name: 'NotFound',
    description: 'The resource in the path does not exist',
    message: 'no such host: 7',
  },
  conflict: {
    name: 'Conflict',
    description: 'A name is taken, or the current state does not allow the request',
    message: 'The hostname web1 is taken by host 7',
  },
  gone: {
    name: 'Gone',
    description: 'The resource existed but is no longer kept',
    message: "The script of task 01J8ZQ3 is missing from the server's disk",
  },
  too_large: {
    name: 'TooLarge',
    description:
      'The body is larger than 2 MiB, a script than 1 MiB, a file than --max-file-size or the free space',
    message: 'The body is larger than 2097152 bytes',
  },
  media_type: {
    name: 'MediaType',
    description: 'The body is not JSON in UTF-8, or not application/octet-stream where required',
    message: 'The body must be application/json',
  },
  too_many: {
    name: 'TooMany',
    description: 'Too many attempts',
    message: 'Too many failed logins; try again in 300 s',
    headers: retryAfter,
  },
  unavailable: {
    name: 'Unavailable',
    description: 'The server is starting or stopping, or its disk refuses writes',
    message: 'The server is starting or shutting down',
    headers: retryAfter,
  },
}

const statusOf = (code: ErrorCode) => httpStatus(new RsmError(code, ''))

/** Schemas of failures: the envelope without `data` (contract §1). */
export const errorSchemas: Record<string, Schema> = {
  FieldFault: {
    type: 'object',
    description: 'One fault of a body or a query; `field` is a dotted path from the root, like `hostIds[1]`.',
    required: ['field', 'message'],
    properties: { field: { type: 'string' }, message: { type: 'string' } },
  },
  Error: {
    type: 'object',
    description: 'The envelope of every failure; `code` is the HTTP status.',
    required: ['code', 'message'],
    properties: {
      code: { type: 'integer' },
      message: { type: 'string' },
      errors: { type: 'array', items: { $ref: '#/components/schemas/FieldFault' } },
      data: {
        type: 'object',
        description:
          'How to continue: `{offset}` of a 409 for a wrong offset, `{status, reasons, server}` of a server that is not ready.',
        additionalProperties: true,
      },
    },
  },
}

const headersOf = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )

export function errorComponent(code: ResponseErrorCode): [name: string, response: object] {
  const { name, description, message, headers } = errorResponses[code]
  const errors = [{ field: 'hostname', message: 'must not be blank' }]
  const example = { code: statusOf(code), message, ...(code === 'invalid' && { errors }) }
  return [
    name,
    {
      description,
      ...(headers && { headers: headersOf(headers) }),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, example } },
    },
  ]
}

/** Errors of an operation, by status: those that follow from its declaration, and its own. */
export function errorCodes(url: string, declared: Operation): ResponseErrorCode[] {
  const { allow, body, bytes, exists, errors = [] } = declared
  const open = allow.open === true
  const codes = new Set<ErrorCode>(errors).add('invalid')
  if (!open) codes.add('unauthenticated').add('forbidden')
  if (exists || url.includes(':')) codes.add('not_found')
  // For records removed because of their age.
  if (exists === 'tasks' || exists === 'terminals') codes.add('gone')
  if (body || bytes) codes.add('too_large').add('media_type')
  if (!declared.always) codes.add('unavailable')
  const described = [...codes].filter((code): code is ResponseErrorCode => code in errorResponses)
  return described.sort((a, b) => statusOf(a) - statusOf(b))
}

export function errorReferences(codes: readonly ResponseErrorCode[]): Record<string, object> {
  return Object.fromEntries(
    codes.map((code) => [statusOf(code), { $ref: `#/components/responses/${errorResponses[code].name}` }]),
  )
}
