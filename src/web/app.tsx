import { useEffect, useRef, useState } from 'preact/hooks'
import { RsmError } from '../core/errors.ts'
import type { LoginResult } from '../core/protocol/http/users.ts'
import { call, errorText } from './api.ts'
import { HostsPage } from './hosts/hosts-page.tsx'
import { useTitle } from './parts/browser.ts'
import { Fault } from './parts/shown.tsx'
import { RecordingPage, RecordingsPage } from './recordings/recordings-page.tsx'
import { hrefOf, type PageName, type Route, route } from './route.ts'
import { RunPage } from './run/run-page.tsx'
import { NewSchedulePage, SchedulePage } from './schedules/schedule-page.tsx'
import { SchedulesPage } from './schedules/schedules-page.tsx'
import { endSession, mayOpen, parting, roleFor, type Session, session } from './session.ts'
import { useStore } from './store.ts'
import { TaskPage } from './tasks/task-page.tsx'
import { TasksPage } from './tasks/tasks-page.tsx'
import { openTerminals } from './terminals/open-terminals.ts'
import { TerminalsPage } from './terminals/terminals-page.tsx'
import { nextTheme, theme } from './theme.ts'
import { NewWebhookPage, WebhookPage, WebhooksPage } from './webhooks/webhooks-page.tsx'

const labels: Record<PageName, string> = {
  hosts: 'Hosts',
  terminals: 'Terminals',
  run: 'Run',
  tasks: 'Tasks',
  schedules: 'Schedules',
  sessions: 'Recordings',
  webhooks: 'Webhooks',
}

export function App() {
  const signedIn = useStore(session)
  const where = useStore(route)
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    document.addEventListener('keydown', focusSearch)
    return () => document.removeEventListener('keydown', focusSearch)
  }, [])
  if (signedIn === undefined) return <SignIn />
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <TopBar page={where.page} user={signedIn.user} />
      <main
        ref={main}
        tabIndex={-1}
        class={where.page === 'terminals' && mayOpen('terminals') ? 'filled' : ''}
      >
        <Page {...where} />
        <TerminalsPage isShown={where.page === 'terminals' && mayOpen('terminals')} />
      </main>
    </>
  )
}

/** `/` focuses the search field of the page, unless the user is typing elsewhere. */
function focusSearch(event: KeyboardEvent): void {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  const { target } = event
  if (target instanceof Element && target.closest('input, textarea, select, dialog') !== null) return
  const search = document.querySelector<HTMLInputElement>('input[type=search][placeholder$="/"]')
  if (search === null) return
  event.preventDefault()
  search.focus()
}

function TopBar({ page, user }: { page: PageName; user: Session['user'] }) {
  const shade = useStore(theme)
  const { tabs } = useStore(openTerminals)
  const pages = (Object.keys(labels) as PageName[]).filter((name) => mayOpen(name))
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
        {pages.map((name) => (
          <a key={name} href={hrefOf(name)} aria-current={name === page ? 'page' : undefined}>
            {labels[name]}
            {name === 'terminals' && tabs.length > 0 && <span class="count">{tabs.length}</span>}
          </a>
        ))}
      </nav>
      <span class="who" title={`Signed in as ${user.username} (${user.role})`}>
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

async function signOut(): Promise<void> {
  // If the server is unreachable the token stays valid until it expires, but this browser forgets it.
  await call('POST', 'api/auth/logout').catch(() => undefined)
  endSession('You are signed out.')
  // An open terminal may already have reported the end of the session.
  parting.set('You are signed out.')
}

function Page({ page, id }: Route) {
  if (!mayOpen(page, id)) return <Refused page={page} id={id} />
  switch (page) {
    case 'hosts':
      return <HostsPage />
    case 'run':
      return <RunPage />
    case 'tasks':
      return id === undefined ? <TasksPage /> : <TaskPage key={id} taskId={id} />
    case 'sessions':
      return id === undefined ? <RecordingsPage /> : <RecordingPage key={id} sessionId={id} />
    case 'schedules':
      if (id === undefined) return <SchedulesPage />
      return id === 'new' ? <NewSchedulePage /> : <SchedulePage key={id} id={id} />
    case 'webhooks':
      if (id === undefined) return <WebhooksPage />
      return id === 'new' ? <NewWebhookPage /> : <WebhookPage key={id} id={id} />
    case 'terminals':
      // Always rendered, so that its screens survive while another page is shown.
      return null
  }
}

function Refused({ page, id }: Route) {
  useTitle(labels[page])
  const { username = '', role = '' } = session.get()?.user ?? {}
  return (
    <section class="page">
      <div class="heading">
        <h1>{labels[page]}</h1>
      </div>
      <p class="empty">
        {`You are ${username}, ${role}; this requires ${roleFor(page, id)}. An administrator can give you that role.`}
      </p>
    </section>
  )
}

/** Whether the server asks for an authenticator code, or for another one. */
const asksForCode = (error: unknown): boolean =>
  error instanceof RsmError && error.fields.some(({ field }) => field === 'code')

/** Browsers honour `autofocus` only during page load. */
const focus = (field: HTMLInputElement | null) => field?.focus()

function SignIn() {
  useTitle('Sign in')
  const word = useStore(parting)
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [takesCode, setTakesCode] = useState(false)

  async function submit(event: SubmitEvent): Promise<void> {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setBusy(true)
    setFault('')
    try {
      const { token, user } = await call<LoginResult>('POST', 'api/auth/login', {
        body: {
          username: form.get('username'),
          password: form.get('password'),
          ...(takesCode && { code: form.get('code') }),
        },
      })
      parting.set('')
      session.set({ token, user })
    } catch (error) {
      if (asksForCode(error)) setTakesCode(true)
      setFault(takesCode || !asksForCode(error) ? errorText(error) : '')
      setBusy(false)
    }
  }

  return (
    <main class="sign-in">
      <form onSubmit={(event) => void submit(event)}>
        <h1>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M8 10l6 6-6 6M17 22h8" />
          </svg>
          Sign in to rsm
        </h1>
        <p role="status" class="hint">
          {word}
        </p>
        <label>
          User
          <input
            name="username"
            required
            autoComplete="username"
            autoCapitalize="off"
            spellcheck={false}
            autoFocus
          />
        </label>
        <label>
          Password
          <input name="password" type="password" required autoComplete="current-password" />
        </label>
        {takesCode && (
          <label>
            Code from the authenticator app
            <input name="code" required minLength={6} autoComplete="one-time-code" ref={focus} />
          </label>
        )}
        <Fault text={fault} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
    </main>
  )
}
