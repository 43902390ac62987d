import { randomBytes } from 'node:crypto'
import { sha256 } from '../../disk/digest.ts'

/** What each kind of bearer token begins with (contract §2). */
export const tokenPrefixes = {
  session: 'rsm_ses_',
  personal: 'rsm_pat_',
  agent: 'rsm_agt_',
  enrollment: 'rsm_enr_',
} as const
export type TokenKind = keyof typeof tokenPrefixes
const kinds = Object.entries(tokenPrefixes) as [TokenKind, string][]

/** A fresh opaque token of 256 bits, and the SHA-256 that is all the store keeps of it. */
export function newToken(kind: TokenKind): { token: string; tokenHash: string } {
  const token = tokenPrefixes[kind] + randomBytes(32).toString('base64url')
  return { token, tokenHash: sha256(token) }
}

export function kindOfToken(token: string): TokenKind | null {
  for (const [kind, prefix] of kinds) if (token.startsWith(prefix)) return kind
  return null
}
