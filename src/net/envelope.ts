import type { FieldFault } from '../core/errors.ts'

/** Wrapper of every response (contract §1). */
interface Envelope {
  readonly code: number
  readonly message: string
  readonly data?: unknown
  readonly errors?: readonly FieldFault[]
}

export const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Undefined if the text is not a JSON object. */
export function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Undefined if the text is not an envelope, such as the error page of a proxy. */
export function parseEnvelope(text: string): Envelope | undefined {
  const value = parseObject(text)
  return value !== undefined && 'code' in value && 'message' in value ? (value as Envelope) : undefined
}
