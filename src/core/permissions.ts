/** Roles of users, weakest first (contract §2). */
export const roles = ['VIEWER', 'OPERATOR', 'ADMIN'] as const
export type Role = (typeof roles)[number]

/** Rights that a user can have in addition to those of the role (contract §2). */
export const rights = ['hosts:remove'] as const
export type Right = (typeof rights)[number]

/** Kinds of operations; each route declares exactly one. */
export type Action = 'read' | 'change' | 'execute' | 'removeHosts' | 'administer'

/** The weakest role that may do it (contract §2), and a right that is an alternative. */
const needs: Record<Action, { readonly role: Role; readonly right?: Right }> = {
  read: { role: 'VIEWER' },
  change: { role: 'OPERATOR' },
  execute: { role: 'OPERATOR' },
  removeHosts: { role: 'ADMIN', right: 'hosts:remove' },
  administer: { role: 'ADMIN' },
}

/** Whether `role` is `needed` or above it. */
export function reaches(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed)
}

export function may(role: Role, action: Action, own: readonly Right[] = []): boolean {
  const { role: needed, right } = needs[action]
  return reaches(role, needed) || (right !== undefined && own.includes(right))
}

/** Required role or right, for people: `OPERATOR`. */
export function neededFor(action: Action): string {
  const { role, right } = needs[action]
  return right === undefined ? role : `${role} or the right ${right}`
}
