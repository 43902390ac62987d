import { IdOnly, NamedQuery, PageOf, PageQuery } from '../../core/protocol/http/common.ts'
import {
  Session,
  SessionsEnded,
  Token,
  TokenCreate,
  TokenCreated,
  User,
  UserCreate,
  UserPatch,
  UserQuery,
} from '../../core/protocol/http/users.ts'
import { sessionCalls, tokenCalls, userCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { serve } from './serve.ts'

const ofAdmins = { read: { users: 'administer' }, write: { users: 'administer', lasting: true } } as const
const own = { read: { anyUser: true }, write: { session: true } } as const

export function userRoutes(app: AppInstance, { services: { users } }: RouteDependencies): void {
  serve(
    app,
    userCalls,
    users,
    { noun: 'users', tag: 'users', ...ofAdmins },
    {
      list: { id: 'listUsers', summary: 'List users', query: UserQuery, answer: PageOf(User) },
      create: {
        id: 'createUser',
        summary: 'Create a user',
        body: UserCreate,
        answer: User,
        created: true,
        errors: ['conflict', 'too_many'],
      },
      get: { id: 'getUser', summary: 'Read a user', answer: User },
      update: {
        id: 'updateUser',
        summary: 'Change a user; a new password or role ends all of their sessions and tokens',
        body: UserPatch,
        answer: User,
        errors: ['conflict', 'too_many'],
        usesReserve: true,
      },
      remove: {
        id: 'deleteUser',
        summary: 'Delete a user; all of their sessions and tokens end',
        answer: IdOnly,
        errors: ['conflict'],
      },
    },
  )
}

export function tokenRoutes(app: AppInstance, { services: { tokens } }: RouteDependencies): void {
  serve(
    app,
    tokenCalls,
    tokens,
    { noun: 'tokens', tag: 'tokens', ...own },
    {
      list: {
        id: 'listTokens',
        summary: "List one's own personal access tokens",
        query: NamedQuery,
        answer: PageOf(Token),
      },
      create: {
        id: 'createToken',
        summary: 'Create a personal access token, e.g. for a pipeline; its text is shown only once',
        body: TokenCreate,
        answer: TokenCreated,
        created: true,
        errors: ['conflict'],
      },
      remove: {
        id: 'deleteToken',
        summary: "Revoke one of one's own personal access tokens; its connections close at once",
        answer: IdOnly,
      },
    },
  )
}

export function sessionRoutes(app: AppInstance, { services: { sessions } }: RouteDependencies): void {
  serve(
    app,
    sessionCalls,
    sessions,
    { noun: 'sessions', tag: 'authentication', ...own },
    {
      list: {
        id: 'listSessions',
        summary: "List one's own valid logins, last used first",
        query: PageQuery,
        answer: PageOf(Session),
      },
      removeOthers: {
        id: 'deleteOtherSessions',
        summary:
          "End all of one's own logins but the one that makes this call; their connections close at once",
        answer: SessionsEnded,
        audit: { action: 'session.deleteOthers', object: 'user' },
      },
      remove: {
        id: 'deleteSession',
        summary: "End one of one's own logins; its connections close at once",
        answer: IdOnly,
      },
    },
  )
}
