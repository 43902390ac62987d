import type { Caller } from '../client/services/auth.ts'
import { sanitizeLine } from './text/sanitize.ts'

/** `admin (ADMIN)`; `admin (ADMIN), by token nightly as OPERATOR`: a token may do less than its owner. */
export function showCaller({ username, role, token }: Caller): string {
  const user = `${username} (${role})`
  if (token?.kind !== 'personal') return user
  return `${user}, by token ${sanitizeLine(token.name ?? '')} as ${token.role}`
}
