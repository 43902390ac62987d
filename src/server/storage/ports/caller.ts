import type { Standing } from './standing.ts'

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
