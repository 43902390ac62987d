import { useEffect, useRef } from 'preact/hooks'
import { HostsPage } from './hosts/hosts-page.tsx'
import { useTitle } from './parts/use-title.ts'
import { RecordingPage } from './recordings/recording-page.tsx'
import { RecordingsPage } from './recordings/recordings-page.tsx'
import { type Route, route } from './route.ts'
import { RunPage } from './run/run-page.tsx'
import { NewSchedulePage, SchedulePage } from './schedules/schedule-page.tsx'
import { SchedulesPage } from './schedules/schedules-page.tsx'
import { mayOpen, roleFor, session } from './session.ts'
import { SignIn } from './sign-in.tsx'
import { useStore } from './store.ts'
import { TaskPage } from './tasks/task-page.tsx'
import { TasksPage } from './tasks/tasks-page.tsx'
import { TerminalsPage } from './terminals/terminals-page.tsx'
import { labels, TopBar } from './top-bar.tsx'
import { NewWebhookPage, WebhookPage } from './webhooks/webhook-page.tsx'
import { WebhooksPage } from './webhooks/webhooks-page.tsx'

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
      // Always there, so that its screens live on while another page is looked at.
      return null
  }
}

/** `/` goes to the search of the page that says so, where one is not typing already. */
function focusSearch(event: KeyboardEvent): void {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  const { target } = event
  if (target instanceof Element && target.closest('input, textarea, select, dialog') !== null) return
  const search = document.querySelector<HTMLInputElement>('input[type=search][placeholder$="/"]')
  if (search === null) return
  event.preventDefault()
  search.focus()
}

export function App() {
  const who = useStore(session)
  const where = useStore(route)
  const main = useRef<HTMLElement>(null)
  useEffect(() => {
    document.addEventListener('keydown', focusSearch)
    return () => document.removeEventListener('keydown', focusSearch)
  }, [])
  if (who === undefined) return <SignIn />
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <TopBar page={where.page} user={who.user} />
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
