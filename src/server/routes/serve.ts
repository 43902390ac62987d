import type { FastifyRequest } from 'fastify'
import type { Static, TSchema } from '../../core/protocol/http/common.ts'
import type { Call } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import { type Allow, type PathNoun, userOf } from '../http/auth.ts'
import { type AuditObjectType, type Operation, operation, type Tag } from '../http/operation.ts'
import type { Starter } from '../services/tasks.ts'

/** Defaults for the operations of a noun: reading requires `read`, all else `write`. */
interface Noun {
  readonly noun: PathNoun
  readonly tag: Tag
  readonly read: Allow
  readonly write: Allow
}

/** An operation of a noun; tag, `allow`, `exists`, `audit` and `usesReserve` default to the noun's. */
type Declared = Pick<Operation, 'id' | 'summary'> & Partial<Operation>

type Ids<Path> = Path extends `${infer First}/${infer Rest}`
  ? [...Ids<First>, ...Ids<Rest>]
  : Path extends ':id'
    ? [id: number]
    : Path extends `:${string}`
      ? [id: string]
      : []

type Input<D> = D extends { body: infer Body extends TSchema }
  ? [body: Static<Body>, ...QueryInput<D>]
  : QueryInput<D>

type QueryInput<D> = D extends { query: infer Query extends TSchema } ? [query: Static<Query>] : []

type Method<C extends Call, D> = (
  caller: Starter,
  ...args: [...Ids<C['path']>, ...Input<D>, idempotencyKey?: string]
) => unknown

/** Registers operations, each a method of the service, in the order of the API's own document. */
export function serve<
  const C extends Record<string, Call>,
  const D extends { readonly [M in keyof C]?: Declared },
>(
  app: AppInstance,
  calls: C,
  service: { readonly [M in keyof D & keyof C]: Method<C[M], D[M]> },
  { noun, tag, read, write }: Noun,
  operations: D,
): void {
  // `users` → `user`.
  const object = noun.slice(0, -1) as AuditObjectType
  const methods = service as Readonly<Record<string, (...args: unknown[]) => unknown>>
  for (const [name, declared] of Object.entries<Declared>(operations as Record<string, Declared>)) {
    const { method, path, onlyReads } = calls[name] as Call
    const ids = [...path.matchAll(/:(\w+)/g)].map(([, id = '']) => id)
    const action = `${object}.${name === 'remove' ? 'delete' : name}`
    app.route({
      method,
      url: path,
      ...operation({
        tag,
        allow: onlyReads ? read : write,
        ...(ids.length > 0 && { exists: noun }),
        ...(!onlyReads && { audit: { action, object } }),
        ...(method === 'DELETE' && { usesReserve: true }),
        ...declared,
      }),
      handler: (request) =>
        methods[name]?.(
          { ...userOf(request), started: request.started },
          ...idsOf(request, ids),
          ...inputOf(request, declared),
          idempotencyKeyOf(request),
        ),
    })
  }
}

function idsOf({ params }: FastifyRequest, names: readonly string[]): (string | number | undefined)[] {
  const texts = params as Record<string, string>
  return names.map((name) => (name === 'id' ? Number(texts[name]) : texts[name]))
}

function inputOf({ body, query }: FastifyRequest, declared: Declared): unknown[] {
  return [...(declared.body ? [body] : []), ...(declared.query ? [query] : [])]
}

export const idempotencyHeader = {
  'Idempotency-Key':
    'For 24 h, repeating a key as the same user returns its first task and starts nothing; with another body, it is a 409.',
} as const

/** The header `Idempotency-Key` (contract §4), or undefined. Node joins repeated ones, which the service rejects. */
function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  return Array.isArray(key) ? key.join(' ') : key
}
