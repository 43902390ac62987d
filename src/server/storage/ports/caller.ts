import { RsmError } from '../../../core/errors.ts'
import { type Action, may, neededFor, type Right, type Role } from '../../../core/permissions.ts'
import type { TokenRecord, UserRecord } from '../records/user.ts'

/** Identity behind a bearer token (contract §2). */
export type Caller =
  | (Standing & {
      type: 'user'
      id: number
      tokenId: number
      /** Milliseconds since the epoch; streams and terminals opened with the token close then. */
      expiresAt: number
      /** As `expiresAt`, if the session stays unused. A session that was used resumes its closed streams. */
      idleAt: number
    })
  | { type: 'agent'; hostId: number; agentId: string; tokenHash: string }
  | { type: 'enrollment'; id: number }
export type UserCaller = Extract<Caller, { type: 'user' }>
export type AgentCaller = Extract<Caller, { type: 'agent' }>

interface Standing {
  username: string
  /** Role of the token, never above the owner's. */
  role: Role
  ownerRole: Role
  rights: readonly Right[]
  tokenKind: TokenRecord['kind']
  /** Whether it may create things that outlive it: users, enrollment tokens and agents (contract §2). */
  mayOutlast: boolean
}

export function standing(token: TokenRecord, owner: UserRecord): Standing {
  const { kind: tokenKind } = token
  const role = tokenKind === 'session' ? owner.role : token.role
  return {
    username: owner.username,
    role,
    ownerRole: owner.role,
    // A token with a lower role than its owner's must not get the owner's extra rights.
    rights: role === owner.role ? (owner.rights ?? []) : [],
    tokenKind,
    mayOutlast: tokenKind === 'session' || token.admin === true,
  }
}

/** A refusal that names the caller: `you are vera (VIEWER); this requires OPERATOR`. */
export function refusal({ username, role, ownerRole, tokenKind }: Standing, takes: string): RsmError {
  const by = tokenKind === 'session' ? '' : `, by a token as ${role}`
  return new RsmError('forbidden', `you are ${username} (${ownerRole}${by}); ${takes}`)
}

/** @throws RsmError `forbidden` that names the caller and the required role. */
export function demand(caller: Standing, action: Action): void {
  if (!may(caller.role, action, caller.rights)) throw refusal(caller, `this requires ${neededFor(action)}`)
}

/** Keeps a leaked token from creating permanent access. @throws RsmError `forbidden`. */
export function demandLasting(caller: Standing): void {
  if (!caller.mayOutlast)
    throw refusal(
      caller,
      'this requires a session (log in), or a token made with `admin: true` (rsm tokens add --admin)',
    )
}

/** @throws RsmError `forbidden` unless the caller has a login session. */
export function demandSession(caller: Standing): void {
  if (caller.tokenKind !== 'session') throw refusal(caller, 'this requires a session: log in')
}
