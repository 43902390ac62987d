import { call } from './api.ts'
import { hrefOf, type PageName } from './route.ts'
import { endSession, mayOpen, parting, type Session } from './session.ts'
import { useStore } from './store.ts'
import { openTerminals } from './terminals/open-terminals.ts'
import { nextTheme, theme } from './theme.ts'

export const labels: Record<PageName, string> = {
  hosts: 'Hosts',
  terminals: 'Terminals',
  run: 'Run',
  tasks: 'Tasks',
  schedules: 'Schedules',
  sessions: 'Recordings',
  webhooks: 'Webhooks',
}

async function signOut(): Promise<void> {
  // Where the server can't be reached the token stays good until it expires, but this browser forgets it.
  await call('POST', 'api/auth/logout').catch(() => undefined)
  endSession('You are signed out.')
  // An open terminal may have heard first that the session has ended.
  parting.set('You are signed out.')
}

export function TopBar({ page, user }: { page: PageName; user: Session['user'] }) {
  const shade = useStore(theme)
  const { tabs } = useStore(openTerminals)
  const shown = (Object.keys(labels) as PageName[]).filter((name) => mayOpen(name))
  return (
    <header class="top">
      <span class="brand">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M8 10l6 6-6 6M17 22h8" />
        </svg>
        rsm
      </span>
      <nav aria-label="Pages">
        {shown.map((name) => (
          <a key={name} href={hrefOf(name)} aria-current={name === page ? 'page' : undefined}>
            {labels[name]}
            {name === 'terminals' && tabs.length > 0 && <span class="count">{tabs.length}</span>}
          </a>
        ))}
      </nav>
      <span class="who" title={`Signed in as ${user.username}, whose role is ${user.role}`}>
        <span class="user">{user.username}</span> <small class="role">{user.role}</small>
      </span>
      <button
        type="button"
        class="plain"
        aria-label={`Theme: ${shade}`}
        onClick={() => theme.set(nextTheme(shade))}
      >
        <span class="wide">Theme: </span>
        {shade}
      </button>
      <button type="button" class="plain" onClick={() => void signOut()}>
        Sign out
      </button>
    </header>
  )
}
