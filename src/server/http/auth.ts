import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify'
import { RsmError } from '../../core/errors.ts'
import type { Action } from '../../core/permissions.ts'
import type { Credentials } from '../access/credentials.ts'
import {
  type Caller,
  demand,
  demandLasting,
  demandSession,
  type UserCaller,
} from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'

/** Callers that a route allows. A route without it prevents the server from starting. */
export interface Allow {
  /** No credential: login, health. */
  open?: true
  users?: Action
  /** Users of any role, for their own data. */
  anyUser?: true
  /**
   * `anyUser` with a login session only: a leaked personal access token must not extend itself, change the password or
   * revoke other tokens.
   */
  session?: true
  /** With `users`, for lasting effects: requires a session, or a personal access token made for it. */
  lasting?: true
  agent?: true
  enrollment?: true
  /** During a store outage, accepts tokens that were valid before. */
  lastKnown?: true
}

/** Nouns in paths, and their names in messages. */
export const pathNouns = {
  hosts: 'host',
  scripts: 'script',
  clusters: 'cluster',
  users: 'user',
  tokens: 'token',
  sessions: 'session',
  enrollments: 'enrollment token',
  tasks: 'task',
  terminals: 'terminal session',
  webhooks: 'webhook',
  schedules: 'schedule',
} as const
/** Noun of `:id`, `:taskId` or `:sessionId` in a path: 404 before the body is read (contract §1). */
export type PathNoun = keyof typeof pathNouns

declare module 'fastify' {
  interface FastifyContextConfig {
    allow?: Allow
    exists?: PathNoun
  }
  interface FastifyRequest {
    caller: Caller | undefined
    /** Path of the route as declared, with parameter names. */
    route: string
    /** Address of the caller; behind a trusted proxy, the client's own. */
    client: string
    /** Monotonic milliseconds. */
    startedAt: number
  }
}

const ownTokens = 'Bearer rsm_'
const schemeLength = 'Bearer '.length
const maxHeader = schemeLength + 256

export function bearer(header: string | undefined): string | undefined {
  // Fast path for our own clients; anything after the prefix is one of our tokens or invalid.
  if (header?.startsWith(ownTokens) && header.length <= maxHeader) return header.slice(schemeLength)
  return /^Bearer ([A-Za-z0-9._~+/=-]{1,256})$/i.exec(header ?? '')?.[1]
}

/** @throws RsmError `forbidden`, naming the caller and the required right. */
function permit(allow: Allow, caller: Caller): void {
  if (caller.type === 'agent') {
    if (!allow.agent)
      throw new RsmError('forbidden', `you are agent ${caller.agentId}; this requires a user token`)
  } else if (caller.type === 'enrollment') {
    if (!allow.enrollment)
      throw new RsmError('forbidden', 'this is an enrollment token: it registers agents, and nothing else')
  } else if (allow.users || allow.session) {
    if (allow.users) demand(caller, allow.users)
    if (allow.lasting) demandLasting(caller)
    if (allow.session) demandSession(caller)
  } else if (!allow.anyUser)
    throw new RsmError(
      'forbidden',
      `you are ${caller.username} (${caller.ownerRole}); this requires an agent token`,
    )
}

const unauthenticated = (given?: string) =>
  given === undefined
    ? new RsmError('unauthenticated', 'Log in first: this requires the header "Authorization: Bearer TOKEN"')
    : new RsmError('unauthenticated', 'This token is unknown, has expired or was revoked')

/** Whether the path's id may belong to a record removed for its age: then 410 instead of 404. */
export type NoLongerKept = (noun: 'tasks' | 'terminals', id: string) => boolean

const gone = {
  tasks: (id: string) =>
    new RsmError('gone', `Task ${id} is no longer kept: ended tasks and their output expire`, {
      hint: 'the server keeps them for --task-retention days; the audit log still shows who ran it',
    }),
  terminals: (id: string) =>
    new RsmError('gone', `Terminal session ${id} is no longer kept, nor is its recording`, {
      hint: 'the server keeps them for --recording-retention days; the audit log still shows who opened it',
    }),
} as const

type Admission = Pick<FastifyContextConfig, 'allow' | 'exists'>

/**
 * Admits callers to one route: 401, then 403, then 404 of the path's id, before the body is read. Routes with lasting
 * changes check the first two again after it. One guard per route avoids lookups per request, and a cached caller
 * needs no promise, so that a heartbeat stays cheap. Unknown paths and methods have no `allow`: any authenticated
 * caller gets 404 or 405.
 */
export function guard(
  store: Store,
  credentials: Credentials,
  { allow, exists }: Admission,
  noLongerKept: NoLongerKept = () => false,
): (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void {
  function admit(request: FastifyRequest, reply: FastifyReply, token?: string, caller?: Caller): void {
    if (!caller) {
      reply.header('www-authenticate', 'Bearer')
      throw unauthenticated(token)
    }
    request.caller = caller
    if (allow) permit(allow, caller)
  }

  async function wait(
    request: FastifyRequest,
    reply: FastifyReply,
    token: string | undefined,
    caller: ReturnType<Credentials> | undefined,
    done: (error?: Error) => void,
  ): Promise<void> {
    try {
      admit(request, reply, token, await caller)
      if (exists) await find(request, exists)
    } catch (error) {
      done(error as Error)
      return
    }
    done()
  }

  async function find(request: FastifyRequest, noun: PathNoun): Promise<void> {
    const { id, taskId, sessionId } = request.params as { id?: string; taskId?: string; sessionId?: string }
    const named = id ?? taskId ?? sessionId ?? ''
    if (await has(store, noun, named, userOf(request))) return
    if ((noun === 'tasks' || noun === 'terminals') && noLongerKept(noun, named)) throw gone[noun](named)
    throw new RsmError('not_found', `no such ${pathNouns[noun]}: ${named}`)
  }

  return (request, reply, done) => {
    if (allow?.open) return done()
    const token = bearer(request.headers.authorization)
    const caller = token === undefined ? undefined : credentials(token)
    if (caller instanceof Promise || exists) return void wait(request, reply, token, caller, done)
    admit(request, reply, token, caller)
    done()
  }
}

async function has(store: Store, noun: PathNoun, named: string, { role, id }: UserCaller): Promise<boolean> {
  if (noun === 'terminals') {
    const session = await store.get('terminals', named)
    // Sessions of other users are hidden from all but ADMINs (contract §2).
    return session !== undefined && (role === 'ADMIN' || session.userId === id)
  }
  if (noun === 'tasks') return (await store.get('tasks', named)) !== undefined
  if (!/^[1-9]\d{0,15}$/.test(named)) return false
  if (noun !== 'sessions') return (await store.get(noun, Number(named))) !== undefined
  const token = await store.get('tokens', Number(named))
  return token?.kind === 'session' && token.userId === id
}

/** The calling user; only for routes that allow nothing but users. */
export function userOf(request: FastifyRequest): UserCaller {
  if (request.caller?.type !== 'user') throw unauthenticated()
  return request.caller
}
