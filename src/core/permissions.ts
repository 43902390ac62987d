/** Roles of users, weakest first (contract §2). */
export const roles = ['VIEWER', 'OPERATOR', 'ADMIN'] as const
export type Role = (typeof roles)[number]

/** What a user may be allowed beside what the role says (contract §2). */
export const rights = ['hosts:remove'] as const
export type Right = (typeof rights)[number]

/** What a caller may ask for; each route names exactly one. */
export type Action = 'read' | 'change' | 'execute' | 'removeHosts' | 'administer'

/** The weakest role that may do it (contract §2), and the right that does as well. */
const needs: Record<Action, { readonly role: Role; readonly right?: Right }> = {
  read: { role: 'VIEWER' },
  change: { role: 'OPERATOR' },
  execute: { role: 'OPERATOR' },
  removeHosts: { role: 'ADMIN', right: 'hosts:remove' },
  administer: { role: 'ADMIN' },
}

/** Whether one role is another or above it. */
export function reaches(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed)
}

export function may(role: Role, action: Action, own: readonly Right[] = []): boolean {
  const { role: needed, right } = needs[action]
  return reaches(role, needed) || (right !== undefined && own.includes(right))
}

/** What it takes, for people: `OPERATOR`. */
export function neededFor(action: Action): string {
  const { role, right } = needs[action]
  return right === undefined ? role : `${role} or the right ${right}`
}
