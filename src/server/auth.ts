import type { FastifyReply, FastifyRequest } from 'fastify'
import { RsmError } from '../core/errors.ts'
import { type Action, may } from '../core/permissions.ts'
import type { Caller, UserCaller } from './caller.ts'
import type { Credentials } from './credentials.ts'
import type { Store } from './store/store.ts'

/** Who may call a route; every route says it, and one that does not stops the server from starting. */
export interface Allow {
  /** No credential at all: login, health. */
  open?: true
  /** Users whose role has this right. */
  users?: Action
  /** Users with any role, for what is their own. */
  anyUser?: true
  agent?: true
  enrollment?: true
  /** Any valid credential: only answers that tell nothing. */
  anyCaller?: true
}

/** Nouns that a path can name, and how a message calls one of them. */
export const pathNouns = {
  hosts: 'host',
  scripts: 'script',
  clusters: 'cluster',
  users: 'user',
  tokens: 'token',
  enrollments: 'enrollment token',
  tasks: 'task',
} as const
/** The noun that `:id` or `:taskId` of a path names: 404 before the body is looked at (contract §1). */
export type PathNoun = keyof typeof pathNouns

declare module 'fastify' {
  interface FastifyContextConfig {
    allow?: Allow
    exists?: PathNoun
  }
  interface FastifyRequest {
    caller: Caller | undefined
  }
}

/** The bearer token of an Authorization header, or undefined. */
export function bearer(header: string | undefined): string | undefined {
  return /^Bearer ([A-Za-z0-9._~+/=-]{1,256})$/i.exec(header ?? '')?.[1]
}

function permits(allow: Allow, caller: Caller): boolean {
  if (allow.anyCaller) return true
  switch (caller.type) {
    case 'user':
      return allow.anyUser === true || (allow.users !== undefined && may(caller.role, allow.users))
    case 'agent':
      return allow.agent === true
    case 'enrollment':
      return allow.enrollment === true
  }
}

const unauthenticated = (given?: string) =>
  given === undefined
    ? new RsmError('unauthenticated', 'Log in first: this needs the header "Authorization: Bearer TOKEN"')
    : new RsmError('unauthenticated', 'This token is unknown, has expired or was revoked')

/** Root hook: 401, then 403, then 404 of the path's id, all before the body is read. */
export function guard(store: Store, credentials: Credentials) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { allow, exists } = request.routeOptions.config
    if (allow?.open) return
    const token = bearer(request.headers.authorization)
    const caller = token === undefined ? undefined : await credentials(token)
    if (!caller) {
      reply.header('www-authenticate', 'Bearer')
      throw unauthenticated(token)
    }
    request.caller = caller
    // A path that does not exist has no `allow`; whoever is known may hear that it is a 404.
    if (allow && !permits(allow, caller))
      throw new RsmError('forbidden', 'Your role does not allow this; ask an administrator')
    if (!exists) return
    const { id, taskId } = request.params as { id?: string; taskId?: string }
    const named = id ?? taskId ?? ''
    if (!(await has(store, exists, named)))
      throw new RsmError('not_found', `There is no ${pathNouns[exists]} ${named}`)
  }
}

async function has(store: Store, noun: PathNoun, named: string): Promise<boolean> {
  if (noun === 'tasks') return (await store.get('tasks', named)) !== undefined
  return /^[1-9]\d{0,15}$/.test(named) && (await store.get(noun, Number(named))) !== undefined
}

/** The user who calls; only for routes that allow none but users. */
export function userOf(request: FastifyRequest): UserCaller {
  if (request.caller?.type !== 'user') throw unauthenticated()
  return request.caller
}
