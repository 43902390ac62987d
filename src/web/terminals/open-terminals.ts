import type { Terminal } from '../../core/protocol/http/terminals.ts'
import { go } from '../route.ts'
import { session } from '../session.ts'
import { createStore, readStored, writeStored } from '../store.ts'

export interface Tab {
  readonly key: string
  readonly hostId: number
  readonly hostname: string
  /** Unique among the tabs. */
  readonly title: string
  /** Undefined until the host has opened it. */
  readonly sessionId: string | undefined
  /** Watches another user's session. */
  readonly isWatching: boolean
}

interface OpenTerminals {
  readonly tabs: readonly Tab[]
  readonly active: string | undefined
}

const key = 'rsm.terminals'
const none: OpenTerminals = { tabs: [], active: undefined }

/** Open tabs, kept across reloads: each reattaches to its session. */
export const openTerminals = createStore<OpenTerminals>(
  session.get() === undefined
    ? none
    : ((readStored(sessionStorage, key) as OpenTerminals | undefined) ?? none),
)
openTerminals.subscribe(() => {
  const { tabs, active } = openTerminals.get()
  writeStored(sessionStorage, key, { tabs: tabs.filter(({ sessionId }) => sessionId !== undefined), active })
})
session.subscribe(() => {
  // The sessions end with their token.
  if (session.get() === undefined) openTerminals.set(none)
})

/** `web1`, `web1 (2)`: the first unused title. */
function titleFor(wanted: string, tabs: readonly Tab[]): string {
  const isTaken = (title: string) => tabs.some((tab) => tab.title === title)
  let title = wanted
  for (let count = 2; isTaken(title); count++) title = `${wanted} (${count})`
  return title
}

function add(tab: Omit<Tab, 'key'>): void {
  const tabKey = `tab-${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`
  openTerminals.update(({ tabs }) => ({
    tabs: [...tabs, { ...tab, title: titleFor(tab.title, tabs), key: tabKey }],
    active: tabKey,
  }))
  go('terminals')
}

export function openTerminal({ id, hostname }: { id: number; hostname: string }): void {
  add({ hostId: id, hostname, title: hostname, sessionId: undefined, isWatching: false })
}

/** Attaches to an existing session, in its tab or a new one; `isWatching`: read only. */
export function attachTerminal(
  { sessionId, hostId, hostname, user }: Pick<Terminal, 'sessionId' | 'hostId' | 'hostname' | 'user'>,
  isWatching: boolean,
): void {
  const known = openTerminals
    .get()
    .tabs.find((tab) => tab.sessionId === sessionId && tab.isWatching === isWatching)
  if (known === undefined)
    return add({
      hostId,
      hostname,
      title: isWatching ? `${hostname}: ${user}` : hostname,
      sessionId,
      isWatching,
    })
  showTab(known.key)
  go('terminals')
}

export function showTab(active: string): void {
  openTerminals.update((now) => ({ ...now, active }))
}

export function nameTerminal(tabKey: string, sessionId: string): void {
  openTerminals.update((now) => ({
    ...now,
    tabs: now.tabs.map((tab) => (tab.key === tabKey ? { ...tab, sessionId } : tab)),
  }))
}

/** Closes a tab and shows its neighbour. */
export function closeTab(tabKey: string): void {
  openTerminals.update(({ tabs, active }) => {
    const at = tabs.findIndex((tab) => tab.key === tabKey)
    const left = tabs.filter((tab) => tab.key !== tabKey)
    const neighbour = left[Math.min(at, left.length - 1)]?.key
    return { tabs: left, active: active === tabKey ? neighbour : active }
  })
}
