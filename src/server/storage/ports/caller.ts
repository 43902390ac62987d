import { RsmError } from '../../../core/errors.ts'
import { type Action, may, neededFor, type Right, type Role } from '../../../core/permissions.ts'
import type { TokenRecord, UserRecord } from '../records/user.ts'

/** Whoever a bearer token stands for (contract §2). */
export type Caller =
  | (Standing & {
      type: 'user'
      id: number
      tokenId: number
      /** Milliseconds since the epoch: what hangs on the token closes then. */
      expiresAt: number
      /** As `expiresAt`: when a session ends that is not used again. Its streams close then and may be taken up by one that was. */
      idleAt: number
    })
  | { type: 'agent'; hostId: number; agentId: string; tokenHash: string }
  | { type: 'enrollment'; id: number }
export type UserCaller = Extract<Caller, { type: 'user' }>
export type AgentCaller = Extract<Caller, { type: 'agent' }>

/** What a user's token lets its holder do. */
interface Standing {
  username: string
  /** That of the token: never above the owner's. */
  role: Role
  ownerRole: Role
  rights: readonly Right[]
  tokenKind: TokenRecord['kind']
  /** Whether what it makes may outlast it: users, enrollment tokens and agents (contract §2). */
  mayOutlast: boolean
}

export function standing(token: TokenRecord, owner: UserRecord): Standing {
  const { kind: tokenKind } = token
  const role = tokenKind === 'session' ? owner.role : token.role
  return {
    username: owner.username,
    role,
    ownerRole: owner.role,
    // Who gave a token less than the own role meant it to do less.
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

/** @throws RsmError `forbidden` that says who the caller is and what it takes. */
export function demand(caller: Standing, action: Action): void {
  if (!may(caller.role, action, caller.rights)) throw refusal(caller, `this requires ${neededFor(action)}`)
}

/** A token that leaked must not make itself last. @throws RsmError `forbidden`. */
export function demandLasting(caller: Standing): void {
  if (!caller.mayOutlast)
    throw refusal(
      caller,
      'this requires a session (log in), or a token made with `admin: true` (rsm tokens add --admin)',
    )
}

/** @throws RsmError `forbidden` for all but a login session. */
export function demandSession(caller: Standing): void {
  if (caller.tokenKind !== 'session') throw refusal(caller, 'this requires a session: log in')
}
