/**
 * Shapes of message payloads. Frames are checked here and not by the schemas of the REST bodies: agents run on every
 * host, and the schema libraries alone take 30 MB there and half a second at the first frame.
 */

/** Says what is wrong with a value, or null; `at` is where it stands, for the sentence. */
export type Shape = (value: unknown, at: string) => string | null

export const text =
  (limits: { pattern?: RegExp; maxLength?: number } = {}): Shape =>
  (value, at) => {
    if (typeof value !== 'string') return `${at} must be a string`
    if (limits.maxLength !== undefined && value.length > limits.maxLength)
      return `${at} must have at most ${limits.maxLength} characters`
    if (limits.pattern && !limits.pattern.test(value)) return `${at} must match ${limits.pattern.source}`
    return null
  }

export const number =
  (limits: { minimum?: number; maximum?: number; integer?: boolean } = {}): Shape =>
  (value, at) => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return `${at} must be a number`
    if (limits.integer && !Number.isSafeInteger(value)) return `${at} must be a whole number`
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = limits
    return value < minimum || value > maximum ? `${at} must be from ${minimum} to ${maximum}` : null
  }

export const truth: Shape = (value, at) => (typeof value === 'boolean' ? null : `${at} must be true or false`)

export const oneOf =
  (...allowed: readonly (string | boolean)[]): Shape =>
  (value, at) =>
    allowed.includes(value as string) ? null : `${at} must be one of ${allowed.join(', ')}`

/** The value may be absent. */
export const optional =
  (shape: Shape): Shape =>
  (value, at) =>
    value === undefined ? null : shape(value, at)

export const nullable =
  (shape: Shape): Shape =>
  (value, at) =>
    value === null ? null : shape(value, at)

export const list =
  (shape: Shape, maxItems: number): Shape =>
  (value, at) => {
    if (!Array.isArray(value)) return `${at} must be a list`
    if (value.length > maxItems) return `${at} must have at most ${maxItems} entries`
    for (const [index, item] of value.entries()) {
      const fault = shape(item, `${at}[${index}]`)
      if (fault) return fault
    }
    return null
  }

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Fields that are not listed are ignored: either side may be newer. */
export const object =
  (fields: Readonly<Record<string, Shape>>): Shape =>
  (value, at) => {
    if (!isObject(value)) return `${at} must be an object`
    for (const [name, shape] of Object.entries(fields)) {
      const fault = shape(Object.hasOwn(value, name) ? value[name] : undefined, `${at}.${name}`)
      if (fault) return fault
    }
    return null
  }

export const map =
  (shape: Shape): Shape =>
  (value, at) => {
    if (!isObject(value)) return `${at} must be an object`
    for (const [name, held] of Object.entries(value)) {
      const fault = shape(held, `${at}.${name}`)
      if (fault) return fault
    }
    return null
  }
