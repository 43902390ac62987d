import type { FastifyContextConfig, FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import type { ErrorCode } from '../../core/errors.ts'
import type { Allow, PathNoun } from './auth.ts'

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

/** Content of an answer in a media type other than JSON. */
export interface Media {
  holds: string
  example: unknown
  /** For a stream of events: the `data` of each event, by name. */
  events?: Readonly<Record<string, TSchema>>
}

/** An operation of the API: who may call, what is validated and audited, and its part of the API document. */
export interface Operation {
  /** `operationId`: the name in generated clients. */
  id: string
  tag: Tag
  summary: string
  allow: Allow
  exists?: PathNoun
  query?: TSchema
  body?: TSchema
  /** The body is a stream of bytes that the handler reads. */
  bytes?: true
  /** `data` of a successful answer; see `media` for answers without the envelope. */
  answer?: TSchema
  /** Answers also while the server starts and stops; other operations answer 503 then. */
  always?: true
  /** May use the reserve of a full disk: login, and operations that end, disable or remove something. */
  usesReserve?: true
  /** Answers 201 instead of 200. */
  created?: true
  /** Media types of a success besides the envelope: content, and an example if there is no `answer`. */
  media?: Readonly<Record<string, string | Media>>
  /** Has an ETag, and answers 304 to clients that have it already. */
  unchanging?: true
  /** Errors beyond those that follow from the declaration. */
  errors?: readonly ErrorCode[]
  /** Relevant request headers, with their effect. */
  headers?: Readonly<Record<string, string>>
  /** Audit log entry of each call (contract §3). */
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

/** Numeric host id of a path with another id; NaN if it is invalid. */
export function hostIdOf(request: { params: unknown }): number {
  const { hostId } = request.params as { hostId: string }
  return /^[1-9]\d{0,15}$/.test(hostId) ? Number(hostId) : Number.NaN
}
