/** Roles of users, weakest first (contract §2). */
export const roles = ['VIEWER', 'OPERATOR', 'ADMIN'] as const
export type Role = (typeof roles)[number]

/** What a caller may ask for; each route names exactly one. */
export type Action = 'read' | 'change' | 'execute' | 'administer'

/** Role × action, the table of contract §2. */
const allowed: Record<Role, Record<Action, boolean>> = {
  VIEWER: { read: true, change: false, execute: false, administer: false },
  OPERATOR: { read: true, change: true, execute: true, administer: false },
  ADMIN: { read: true, change: true, execute: true, administer: true },
}

export function may(role: Role, action: Action): boolean {
  return allowed[role][action]
}
