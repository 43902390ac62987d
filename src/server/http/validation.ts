import { isIP } from 'node:net'
import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv'
import type { FastifySchemaValidationError } from 'fastify'
import { type FieldFault, invalid, maxListed, type RsmError } from '../../core/errors.ts'
import { reservedFault } from '../../core/scripts/params.ts'

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

function newAjv(coerceTypes: false | 'array'): Ajv {
  const ajv = new Ajv({
    allErrors: true,
    coerceTypes,
    removeAdditional: false,
    useDefaults: true,
    strict: false,
    // `strict: false` disables it, but JSON such as 1e999 parses to Infinity.
    strictNumbers: true,
    verbose: true,
    // A test validates our schemas; compiling the meta-schema would cost the first request 100 ms, twice.
    validateSchema: false,
  })
  ajv.addFormat('not-blank', (text) => text.trim() !== '')
  ajv.addFormat('ip', (text) => isIP(text) !== 0)
  ajv.addFormat('date-time', (text) => dateTime.test(text) && !Number.isNaN(Date.parse(text)))
  ajv.addFormat('unreserved', (name) => reservedFault(name) === null)
  return ajv
}

/** Bodies are never coerced; query strings are (contract §1). */
export const bodyAjv = newAjv(false)
export const queryAjv = newAjv('array')

/** Replaces a query value that is not decimal, so that it cannot be coerced to a number. */
const notDecimal = 'not decimal'

/** Rejects anything but decimal digits: JavaScript also coerces `0x10`, `1e3`, `+1` and ` 1` (contract §1). */
function keepDecimals(query: Record<string, unknown>, numbers: readonly string[]): void {
  for (const name of numbers) {
    const text = query[name]
    if (typeof text === 'string' && text !== '' && !/^(?:0|[1-9][0-9]*)$/.test(text)) query[name] = notDecimal
  }
}

const isNumber = ({ type }: SchemaLike) => type === 'integer' || type === 'number'

/** Like `validator`, for a query: numbers must be decimal digits. */
export function queryValidator(schema: AnySchema) {
  const isValid = validator(queryAjv, schema)
  const properties = Object.entries((schema as SchemaLike).properties ?? {})
  const numbers = properties.filter(([, property]) => isNumber(property)).map(([name]) => name)
  return (query: unknown) => {
    if (numbers.length > 0) keepDecimals(query as Record<string, unknown>, numbers)
    return isValid(query)
  }
}

/** Compiles on first use, because each schema costs milliseconds and most runs use few of them. */
export function validator(ajv: Ajv, schema: AnySchema) {
  let isValid: ValidateFunction | undefined
  return (data: unknown): true | { error: FastifySchemaValidationError[] } => {
    isValid ??= ajv.compile(schema)
    return isValid(data) || { error: isValid.errors ?? [] }
  }
}

/** `/hostIds/1` → `hostIds[1]`, `/params/PATH` → `params.PATH`. */
function dotted(pointer: string, last?: string): string {
  const steps = pointer.split('/').slice(1)
  if (last !== undefined) steps.push(last)
  let path = ''
  for (const step of steps) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    if (/^\d+$/.test(name)) path += `[${name}]`
    else path += path ? `.${name}` : name
  }
  return path
}

interface SchemaLike {
  type?: unknown
  enum?: unknown[]
  properties?: Record<string, SchemaLike>
  patternProperties?: Record<string, unknown>
  format?: string
  description?: string
}

function missing(error: ErrorObject): string {
  const parent = error.parentSchema as SchemaLike | undefined
  const property = parent?.properties?.[String(error.params['missingProperty'])]
  return property?.type === 'string' || property?.enum ? 'must not be blank' : 'is required'
}

function message(error: ErrorObject): string {
  const parent = error.parentSchema as SchemaLike | undefined
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'required':
      return missing(error)
    case 'additionalProperties':
      return parent?.patternProperties
        ? `is not a valid name: names match ${Object.keys(parent.patternProperties).join(' or ')}`
        : 'unknown field'
    case 'enum':
      return `must be one of ${(parent?.enum ?? []).join(', ')}`
    case 'anyOf':
      return parent?.description === undefined
        ? 'does not match any allowed form'
        : `must be ${parent.description}`
    case 'propertyNames':
      return reservedFault(String(params['propertyName'])) ?? 'is not a valid name'
    case 'minLength':
      return params['limit'] === 1
        ? 'must not be blank'
        : `must have at least ${String(params['limit'])} characters`
    case 'maxLength':
      return `must have at most ${String(params['limit'])} characters`
    case 'minItems':
      return params['limit'] === 1
        ? 'must not be empty'
        : `must have at least ${String(params['limit'])} entries`
    case 'maxItems':
      return `must have at most ${String(params['limit'])} entries`
    case 'format':
      if (parent?.format === 'not-blank') return 'must not be blank'
      if (parent?.format === 'ip') return 'must be an IPv4 or IPv6 address'
      return 'must be an ISO 8601 time in UTC'
    case 'pattern':
      if (String(params['pattern']).startsWith('^/')) return 'must be an absolute path'
      if (String(params['pattern']).includes('u200b'))
        return 'must not contain control, bidi or zero-width characters, or half of a surrogate pair'
      if (String(params['pattern']).includes('u0000')) return 'must not contain control characters'
      return parent?.description === undefined
        ? `must match ${String(params['pattern'])}`
        : `must be ${parent.description}`
    case 'type':
      if (error.data === notDecimal) return 'must be written in decimal digits'
      return `must be of type ${String(params['type'])}`
    default:
      return error.message ?? 'is not valid'
  }
}

/** Limit, because clients choose the names of unknown fields. */
const maxField = 256

function fieldOf(error: ErrorObject, last: string | undefined): string {
  const field = dotted(error.instancePath, last)
  return field.length > maxField ? `${field.slice(0, maxField - 1)}…` : field
}

/** Whether a path or one of its parents is in `paths`. */
function isWithin(path: string, paths: ReadonlySet<string>): boolean {
  for (let at = path.length; at > 0; at = path.lastIndexOf('/', at - 1))
    if (paths.has(path.slice(0, at))) return true
  return paths.has('')
}

/** All faults of ajv, one per field, in the words of contract §1; past the limit, only their number. */
export function validationError(errors: readonly ErrorObject[]): RsmError {
  // Each branch of an `anyOf` reports errors; only the error of the `anyOf` itself helps.
  const alternatives = new Set(
    errors.filter((error) => error.keyword === 'anyOf').map((error) => error.instancePath),
  )
  const faults = new Map<string, FieldFault>()
  let unlisted = 0
  /** Current place: faults of one place are consecutive. */
  let at: { path: string; last: string | undefined; isListed: boolean } | undefined
  for (const error of errors) {
    const params = error.params as {
      missingProperty?: string
      additionalProperty?: string
      propertyName?: string
    }
    // The `propertyNames` above reports faults of a name.
    if (error.schemaPath.includes('/propertyNames/')) continue
    if (error.schemaPath.includes('/anyOf/') && isWithin(error.instancePath, alternatives)) continue
    const last = params.missingProperty ?? params.additionalProperty ?? params.propertyName
    if (at?.path !== error.instancePath || at.last !== last) {
      at = { path: error.instancePath, last, isListed: faults.size < maxListed }
      if (!at.isListed) unlisted++
    }
    if (!at.isListed) continue
    const place = last === undefined ? error.instancePath : `${error.instancePath}/${last}`
    const known = faults.get(place)
    // A blank string violates length, format and pattern at once; `must not be blank` is the clearest.
    const text = message(error)
    if (!known || text === 'must not be blank')
      faults.set(place, { field: fieldOf(error, last), message: text })
  }
  return invalid([...faults.values()], unlisted)
}
