/**
 * Shapes of message payloads: each validates a value and carries its type. Agents run on every host, so they avoid
 * the schema libraries of the REST bodies: 30 MB, and half a second at the first frame.
 */

/** Returns what is wrong with a value, or null if it is a `T`; `at` is its path, for the sentence. */
export interface Shape<T> {
  (value: unknown, at: string): string | null
  /** For type inference only: never set. */
  readonly phantom?: T
}

interface OptionalShape<T> extends Shape<T> {
  readonly isOptional: true
}

export type Infer<S> = S extends Shape<infer T> ? T : never

type Fields = Readonly<Record<string, Shape<unknown>>>
type InferFields<F extends Fields> = {
  [K in keyof F as F[K] extends OptionalShape<unknown> ? never : K]: Infer<F[K]>
} & { [K in keyof F as F[K] extends OptionalShape<unknown> ? K : never]?: Infer<F[K]> }
type Flat<T> = { [K in keyof T]: T[K] }

export const text =
  (limits: { pattern?: RegExp; maxLength?: number } = {}): Shape<string> =>
  (value, at) => {
    if (typeof value !== 'string') return `${at} must be a string`
    if (limits.maxLength !== undefined && value.length > limits.maxLength)
      return `${at} must have at most ${limits.maxLength} characters`
    if (limits.pattern && !limits.pattern.test(value)) return `${at} must match ${limits.pattern.source}`
    return null
  }

export const number =
  (limits: { minimum?: number; maximum?: number; integer?: boolean } = {}): Shape<number> =>
  (value, at) => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return `${at} must be a number`
    if (limits.integer && !Number.isSafeInteger(value)) return `${at} must be a whole number`
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = limits
    return value < minimum || value > maximum ? `${at} must be from ${minimum} to ${maximum}` : null
  }

export const truth: Shape<boolean> = (value, at) =>
  typeof value === 'boolean' ? null : `${at} must be true or false`

export const oneOf =
  <const T extends string | boolean>(...allowed: readonly T[]): Shape<T> =>
  (value, at) =>
    allowed.includes(value as T) ? null : `${at} must be one of ${allowed.join(', ')}`

export function optional<T>(shape: Shape<T>): OptionalShape<T> {
  const orAbsent: Shape<T> = (value, at) => (value === undefined ? null : shape(value, at))
  return Object.assign(orAbsent, { isOptional: true as const })
}

export const nullable =
  <T>(shape: Shape<T>): Shape<T | null> =>
  (value, at) =>
    value === null ? null : shape(value, at)

export const list =
  <T>(shape: Shape<T>, maxItems: number): Shape<T[]> =>
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

/** Ignores unknown fields: either side may be newer. */
export const object =
  <F extends Fields>(fields: F): Shape<Flat<InferFields<F>>> =>
  (value, at) => {
    if (!isObject(value)) return `${at} must be an object`
    for (const [name, shape] of Object.entries(fields)) {
      const fault = shape(Object.hasOwn(value, name) ? value[name] : undefined, `${at}.${name}`)
      if (fault) return fault
    }
    return null
  }

export const map =
  <T>(shape: Shape<T>): Shape<Record<string, T>> =>
  (value, at) => {
    if (!isObject(value)) return `${at} must be an object`
    for (const [name, item] of Object.entries(value)) {
      const fault = shape(item, `${at}.${name}`)
      if (fault) return fault
    }
    return null
  }
