import type { FastifyContextConfig, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import type { ErrorCode } from '../../core/errors.ts'
import type { Allow, PathNoun } from './auth.ts'

/** Object types in entries of the audit log. */
export type AuditObjectType =
  | 'agent'
  | 'cluster'
  | 'enrollment'
  | 'file'
  | 'host'
  | 'schedule'
  | 'script'
  | 'server'
  | 'session'
  | 'task'
  | 'terminal'
  | 'token'
  | 'user'
  | 'webhook'

/** Groups of operations in the API's own document. */
export type Tag =
  | 'agents'
  | 'audit'
  | 'authentication'
  | 'clusters'
  | 'enrollment tokens'
  | 'events'
  | 'files'
  | 'hosts'
  | 'schedules'
  | 'scripts'
  | 'server'
  | 'tasks'
  | 'terminals'
  | 'tokens'
  | 'users'
  | 'webhooks'

/** What an operation answers in a media type of its own. */
export interface Media {
  holds: string
  example: unknown
  /** Of a stream of events: the `data` of each, by its name. */
  events?: Readonly<Record<string, TSchema>>
}

/**
 * One operation of the API. Everything that is known of it follows from here: who is let in, what is validated, what is
 * audited, and how the API's own document describes it.
 */
export interface Operation {
  /** `operationId`: what a generated client calls it. */
  id: string
  tag: Tag
  summary: string
  allow: Allow
  exists?: PathNoun
  query?: TSchema
  body?: TSchema
  /** The body is bytes, which the handler reads as they come. */
  bytes?: true
  /** The `data` of a success; for what does not come in the envelope, see `media`. */
  answer?: TSchema
  /** Answers while the server starts and stops, too; everything else is 503 then. */
  always?: true
  /** May write to the reserve of a full disk: login, or an end, disabling or removal of something. */
  usesReserve?: true
  /** Answers 201 instead of 200. */
  created?: true
  /** Media types of a success beside the envelope, with what they hold, and an example where the answer has none. */
  media?: Readonly<Record<string, string | Media>>
  /** Bears an entity tag, and answers 304 to who has it already. */
  unchanging?: true
  /** Errors of its own, beyond those that follow from the rest. */
  errors?: readonly ErrorCode[]
  /** Headers of the request that matter, with what they do. */
  headers?: Readonly<Record<string, string>>
  /** The entry that each call leaves in the audit log (contract §3). */
  audit?: { action: string; object: AuditObjectType }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: Operation
  }
}

type Schemas<O extends Operation> = FastifySchema &
  (O extends { query: infer Q extends TSchema } ? { querystring: Q } : unknown) &
  (O extends { body: infer B extends TSchema } ? { body: B } : unknown)

/** The options of a Fastify route for an operation. */
export function operation<const O extends Operation>(
  declared: O,
): { config: FastifyContextConfig & { operation: O }; schema: Schemas<O> } {
  const { allow, exists, query, body } = declared
  const schema = {
    ...(query === undefined ? {} : { querystring: query }),
    ...(body === undefined ? {} : { body }),
  }
  return {
    config: { allow, operation: declared, ...(exists === undefined ? {} : { exists }) },
    schema: schema as Schemas<O>,
  }
}

export function taskIdOf(request: { params: unknown }): string {
  return (request.params as { taskId: string }).taskId
}

export function sessionIdOf(request: { params: unknown }): string {
  return (request.params as { sessionId: string }).sessionId
}

export function fileIdOf(request: { params: unknown }): string {
  return (request.params as { fileId: string }).fileId
}

/** The numeric id of a host that stands in the path beside another id; NaN for an invalid one. */
export function hostIdOf(request: { params: unknown }): number {
  const { hostId } = request.params as { hostId: string }
  return /^[1-9]\d{0,15}$/.test(hostId) ? Number(hostId) : Number.NaN
}
