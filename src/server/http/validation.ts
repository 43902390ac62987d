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
    // `strict` would switch it off: JSON has no infinity, but 1e999 is parsed as one.
    strictNumbers: true,
    verbose: true,
    // Ours are schemas: a test holds that. To compile the schema of schemas costs the first request 100 ms, and twice.
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

/** Stands in a query for a number that is written otherwise: it can be no number, whoever reads it. */
const notDecimal = 'not decimal'

/**
 * Leaves only numbers in decimal digits to be coerced: JavaScript would take `0x10`, `1e3`, `+1` and ` 1` for numbers, too
 * (contract §1).
 */
function keepDecimals(query: Record<string, unknown>, numbers: readonly string[]): void {
  for (const name of numbers) {
    const text = query[name]
    if (typeof text === 'string' && text !== '' && !/^(?:0|[1-9][0-9]*)$/.test(text)) query[name] = notDecimal
  }
}

const isNumber = ({ type }: SchemaLike) => type === 'integer' || type === 'number'

/** As `validator`, for a query: its numbers are decimal digits. */
export function queryValidator(schema: AnySchema) {
  const isValid = validator(queryAjv, schema)
  const properties = Object.entries((schema as SchemaLike).properties ?? {})
  const numbers = properties.filter(([, property]) => isNumber(property)).map(([name]) => name)
  return (query: unknown) => {
    if (numbers.length > 0) keepDecimals(query as Record<string, unknown>, numbers)
    return isValid(query)
  }
}

/** Compiled when it is first asked: of a hundred routes most starts of a server see few, and each costs milliseconds. */
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
        ? 'has none of the allowed forms'
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
        return 'must not hold control, bidi or zero-width characters, or half of a surrogate pair'
      if (String(params['pattern']).includes('u0000')) return 'must not hold control characters'
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

/** Names of unknown fields are the sender's, and as long as they like. */
const maxField = 256

function fieldOf(error: ErrorObject, last: string | undefined): string {
  const field = dotted(error.instancePath, last)
  return field.length > maxField ? `${field.slice(0, maxField - 1)}…` : field
}

/** Whether a path or one above it is among those. */
function isWithin(path: string, paths: ReadonlySet<string>): boolean {
  for (let at = path.length; at > 0; at = path.lastIndexOf('/', at - 1))
    if (paths.has(path.slice(0, at))) return true
  return paths.has('')
}

/** All faults that ajv found, one a field, with the words of contract §1; of a flood the first, and how many there are. */
export function validationError(errors: readonly ErrorObject[]): RsmError {
  // Below an `anyOf` each branch complains; the one sentence of the `anyOf` itself is what helps.
  const alternatives = new Set(
    errors.filter((error) => error.keyword === 'anyOf').map((error) => error.instancePath),
  )
  const faults = new Map<string, FieldFault>()
  let unlisted = 0
  /** Faults of one place come one after the other. */
  let at: { path: string; last: string | undefined; isListed: boolean } | undefined
  for (const error of errors) {
    const params = error.params as {
      missingProperty?: string
      additionalProperty?: string
      propertyName?: string
    }
    // What is wrong with a name is told by the `propertyNames` above it.
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
    // A blank string breaks length, format and pattern at once; `must not be blank` says it best.
    const text = message(error)
    if (!known || text === 'must not be blank')
      faults.set(place, { field: fieldOf(error, last), message: text })
  }
  return invalid([...faults.values()], unlisted)
}
