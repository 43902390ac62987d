import type { Role } from '../../core/permissions.ts'

/** Whoever a bearer token stands for (contract §2). */
export type Caller =
  | {
      type: 'user'
      id: number
      username: string
      role: Role
      tokenId: number
      tokenKind: 'session' | 'personal'
      /** Milliseconds since the epoch: what hangs on the token closes then. */
      expiresAt: number
      /** As `expiresAt`: when a session ends that is not used again. Its streams close then and may be taken up by one that was. */
      idleAt: number
    }
  | { type: 'agent'; hostId: number; agentId: string; tokenHash: string }
  | { type: 'enrollment'; id: number }
export type UserCaller = Extract<Caller, { type: 'user' }>
