export interface Context {
  readonly url: string
  readonly username?: string
  readonly caFile?: string
  readonly tlsFingerprint?: string
  /** Data directory of the quickstart that created the context. */
  readonly quickstart?: string
}

export interface ConfigFile {
  current: string | null
  contexts: Record<string, Context>
}

/** A stored token and the one URL that it may be sent to (contract §9). */
interface StoredToken {
  readonly url: string
  readonly token: string
}

class Misshapen extends Error {
  constructor(where: string, expected: string) {
    super(`${where} is not ${expected}`)
  }
}

function objectAt(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new Misshapen(where, 'an object')
}

/** Reads a record by name. Its prototype is null, so that `constructor` and `__proto__` are valid names. */
function named<T>(
  value: unknown,
  where: string,
  read: (value: unknown, where: string) => T,
): Record<string, T> {
  const all = Object.create(null) as Record<string, T>
  for (const [name, one] of Object.entries(objectAt(value, where || 'it')))
    all[name] = read(one, where === '' ? name : `${where}.${name}`)
  return all
}

const isText = (value: unknown): value is string => typeof value === 'string'

function contextAt(value: unknown, where: string): Context {
  const context = objectAt(value, where)
  const { url } = context
  if (!isText(url) || !URL.canParse(url) || !/^https?:/i.test(url))
    throw new Misshapen(`${where}.url`, 'an http or https URL')
  for (const name of ['username', 'caFile', 'tlsFingerprint', 'quickstart'])
    if (context[name] !== undefined && !isText(context[name])) throw new Misshapen(`${where}.${name}`, 'text')
  return context as unknown as Context
}

function tokenAt(value: unknown, where: string): StoredToken {
  const { url, token } = objectAt(value, where)
  if (!isText(url) || !isText(token)) throw new Misshapen(where, 'a token with its url')
  return { url, token }
}

/** Parses config.json; `undefined` if there is none. Errors: the invalid value and its place. */
export function readConfig(value: unknown): ConfigFile {
  const { current, contexts } = objectAt(value ?? {}, 'it')
  if (current !== undefined && current !== null && !isText(current)) throw new Misshapen('current', 'a name')
  return { current: current ?? null, contexts: named(contexts ?? {}, 'contexts', contextAt) }
}

export function readTokens(value: unknown): Record<string, StoredToken> {
  return named(value ?? {}, '', tokenAt)
}
