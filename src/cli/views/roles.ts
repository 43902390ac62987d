import type { Caller } from '../../client/services/requests.ts'
import type { Token, User } from '../../core/protocol/http/users.ts'
import { sanitizeLine } from '../text/sanitize.ts'

/** `OPERATOR`, or `OPERATOR, hosts:remove` with more rights than the role. Older servers report no rights. */
export function showUserRole({
  role,
  rights = [],
}: Pick<User, 'role'> & { rights?: User['rights'] }): string {
  return [role, ...rights].join(', ')
}

/** `ADMIN`; `ADMIN with --admin` for a token that may change users, enrollment tokens and webhooks. */
export function showTokenRole({ role, admin }: Pick<Token, 'role'> & { admin?: boolean }): string {
  return admin === true ? `${role} with --admin` : role
}

/** `admin (ADMIN), by token nightly as OPERATOR`: a token may have fewer rights than its owner. */
export function showCaller({ username, token, ...of }: Caller): string {
  const user = sanitizeLine(`${username} (${showUserRole(of)})`)
  if (token?.kind !== 'personal') return user
  return `${user}, by token ${sanitizeLine(`${token.name ?? ''} as ${showTokenRole(token)}`)}`
}
