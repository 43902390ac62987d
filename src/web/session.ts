import { type Action, may, neededFor } from '../core/permissions.ts'
import type { LoginResult } from '../core/protocol/http/users.ts'
import type { PageName } from './route.ts'
import { createStore, readStored, writeStored } from './store.ts'

export type Session = Pick<LoginResult, 'token' | 'user'>

const key = 'rsm.session'

/** The signed-in user, for this browser tab only: closing the tab ends it. */
export const session = createStore<Session | undefined>(
  readStored(sessionStorage, key) as Session | undefined,
)
session.subscribe(() => writeStored(sessionStorage, key, session.get()))

export const parting = createStore('')

/** Ends the session and everything kept for it; `why` is shown on the sign-in page. */
export function endSession(why: string): void {
  if (session.get() === undefined) return
  parting.set(why)
  session.set(undefined)
}

const pageActions: Partial<Record<PageName, Action>> = {
  terminals: 'execute',
  run: 'execute',
  sessions: 'execute',
  webhooks: 'administer',
}

const actionOf = (page: PageName, id?: string): Action =>
  page === 'schedules' && id === 'new' ? 'execute' : (pageActions[page] ?? 'read')

export function mayOpen(page: PageName, id?: string): boolean {
  return allowed(actionOf(page, id))
}

export const roleFor = (page: PageName, id?: string): string => neededFor(actionOf(page, id))

export function allowed(action: Action): boolean {
  const now = session.get()
  return now !== undefined && may(now.user.role, action)
}
