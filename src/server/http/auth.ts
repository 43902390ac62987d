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

/** Who may call a route; every route says it, and one that does not stops the server from starting. */
export interface Allow {
  /** No credential at all: login, health. */
  open?: true
  /** Users whose role has this right. */
  users?: Action
  /** Users with any role, for what is their own. */
  anyUser?: true
  /**
   * The same, but only from a login session: a personal access token that leaked must not make itself last, change the
   * password or take other tokens away.
   */
  session?: true
  /** Beside `users`, for what may outlast the token: from a session, or a personal access token made for it. */
  lasting?: true
  agent?: true
  enrollment?: true
  /** Accepts, while the store is away, tokens that were valid when it was last reached. */
  lastKnown?: true
}

/** Nouns that a path can name, and how a message calls one of them. */
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
/** The noun that `:id`, `:taskId` or `:sessionId` of a path names: 404 before the body is looked at (contract §1). */
export type PathNoun = keyof typeof pathNouns

declare module 'fastify' {
  interface FastifyContextConfig {
    allow?: Allow
    exists?: PathNoun
  }
  interface FastifyRequest {
    caller: Caller | undefined
    /** The path of the route as it was declared, with its parameters' names. */
    route: string
    /** The address of whoever calls: behind a trusted proxy the client's own. */
    client: string
    /** Monotonic milliseconds. */
    startedAt: number
  }
}

const ownTokens = 'Bearer rsm_'
const schemeLength = 'Bearer '.length
const maxHeader = schemeLength + 256

/** The bearer token of an Authorization header, or undefined. */
export function bearer(header: string | undefined): string | undefined {
  // As our own clients write it; whatever follows is one of our tokens or none at all.
  if (header?.startsWith(ownTokens) && header.length <= maxHeader) return header.slice(schemeLength)
  return /^Bearer ([A-Za-z0-9._~+/=-]{1,256})$/i.exec(header ?? '')?.[1]
}

/** @throws RsmError `forbidden` that says who calls, and what this takes. */
function permit(allow: Allow, caller: Caller): void {
  if (caller.type === 'agent') {
    if (!allow.agent)
      throw new RsmError('forbidden', `you are agent ${caller.agentId}; this takes the token of a user`)
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
      `you are ${caller.username} (${caller.ownerRole}); this takes the token of an agent`,
    )
}

const unauthenticated = (given?: string) =>
  given === undefined
    ? new RsmError('unauthenticated', 'Log in first: this needs the header "Authorization: Bearer TOKEN"')
    : new RsmError('unauthenticated', 'This token is unknown, has expired or was revoked')

/** Whether the path's id may name something that was removed for its age: then it is 410, not 404. */
export type NoLongerKept = (noun: 'tasks' | 'terminals', id: string) => boolean

const gone = {
  tasks: (id: string) =>
    new RsmError('gone', `Task ${id} is no longer kept: ended tasks and their output are removed in time`, {
      hint: 'the server keeps them for --task-retention days; the audit log still says who ran it',
    }),
  terminals: (id: string) =>
    new RsmError('gone', `Terminal session ${id} is no longer kept, nor is its recording`, {
      hint: 'the server keeps them for --recording-retention days; the audit log still says who had it open',
    }),
} as const

/** What a route says of who may call it, and of what its path names. */
type Admission = Pick<FastifyContextConfig, 'allow' | 'exists'>

/**
 * Admits callers to one route: 401, then 403, then 404 of the path's id, all before the body is read (and the first two
 * again after it, where the route changes what lasts). One guard a route,
 * so that nothing of the route is looked up again at each request; and without a promise where the caller is known and
 * the path names nothing, so that a heartbeat costs little. A path that does not exist, or has not that method, has
 * no `allow`: whoever is known may hear that it is a 404 or 405.
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
    // Another's is hidden from all but administrators (contract §2).
    return session !== undefined && (role === 'ADMIN' || session.userId === id)
  }
  if (noun === 'tasks') return (await store.get('tasks', named)) !== undefined
  if (!/^[1-9]\d{0,15}$/.test(named)) return false
  if (noun !== 'sessions') return (await store.get(noun, Number(named))) !== undefined
  const token = await store.get('tokens', Number(named))
  return token?.kind === 'session' && token.userId === id
}

/** The user who calls; only for routes that allow none but users. */
export function userOf(request: FastifyRequest): UserCaller {
  if (request.caller?.type !== 'user') throw unauthenticated()
  return request.caller
}
