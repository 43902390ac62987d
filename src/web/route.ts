import { createStore } from './store.ts'

/** Pages, by their name after `#/` in the address bar. */
export const pages = ['hosts', 'terminals', 'run', 'tasks', 'schedules', 'sessions', 'webhooks'] as const
export type PageName = (typeof pages)[number]

export interface Route {
  page: PageName
  /** ID of a task, session, schedule or webhook, or `new`. */
  id: string | undefined
}

function parse(hash: string): Route {
  const [name, id] = hash.replace(/^#\/?/, '').split('/')
  const page = pages.find((known) => known === name) ?? 'hosts'
  return { page, id: id === undefined || id === '' ? undefined : decodeURIComponent(id) }
}

export const route = createStore<Route>(parse(location.hash))
addEventListener('hashchange', () => route.set(parse(location.hash)))

export function hrefOf(page: PageName, id?: string): string {
  return id === undefined ? `#/${page}` : `#/${page}/${encodeURIComponent(id)}`
}

export function go(page: PageName, id?: string): void {
  location.hash = hrefOf(page, id)
  // Do not wait for the hashchange event: the caller needs the page to be shown.
  route.set(parse(location.hash))
}
