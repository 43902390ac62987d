import { useEffect, useState } from 'preact/hooks'
import type { Terminal } from '../../core/protocol/http/terminals.ts'
import { all, call, said } from '../api.ts'
import { pause } from '../event-stream.ts'
import { shownBytes, shownDuration, shownTime } from '../parts/time.ts'
import { useTitle } from '../parts/use-title.ts'
import { hrefOf } from '../route.ts'
import { allowed, session } from '../session.ts'
import { attachTerminal } from '../terminals/open-terminals.ts'

const refreshInterval = 5_000
const mostRows = 200

interface Sessions {
  open: readonly Terminal[]
  ended: readonly Terminal[]
}

async function read(): Promise<Sessions> {
  const [open, ended] = await Promise.all([
    all<Terminal>('api/terminals', { status: 'OPEN' }, mostRows),
    all<Terminal>('api/terminals', { status: 'CLOSED', recorded: true }, mostRows),
  ])
  return { open, ended }
}

function lasted({ startedAt, endedAt }: Terminal): string {
  return endedAt === null ? '–' : shownDuration(Date.parse(endedAt) - Date.parse(startedAt))
}

export function SessionsPage() {
  useTitle('Recordings')
  const [sessions, setSessions] = useState<Sessions | undefined>()
  const [fault, setFault] = useState('')
  const user = session.get()?.user.username
  const show = (found: Sessions) => {
    setSessions(found)
    setFault('')
  }
  useEffect(() => {
    const leave = new AbortController()
    const { signal } = leave
    const refresh = async () => {
      while (!signal.aborted) {
        await read().then(show, (error: unknown) => setFault(said(error)))
        await pause(refreshInterval, signal)
      }
    }
    void refresh()
    return () => leave.abort()
  }, [])

  function end({ sessionId, hostname, user: owner }: Terminal): void {
    if (!window.confirm(`End the session of ${owner} on ${hostname}, and all that runs in it?`)) return
    call('DELETE', `api/terminals/${encodeURIComponent(sessionId)}`)
      .then(read)
      .then(show, (error: unknown) => setFault(said(error)))
  }

  const { open = [], ended = [] } = sessions ?? {}
  return (
    <section class="page">
      {fault !== '' && (
        <p role="alert" class="fault">
          {fault}
        </p>
      )}
      {open.length > 0 && (
        <>
          <div class="heading">
            <h1>Open now</h1>
          </div>
          <table class="rows">
            <thead>
              <tr>
                <th>Host</th>
                <th>User</th>
                <th>Since</th>
                <th class="narrow" aria-label="Actions" />
              </tr>
            </thead>
            <tbody>
              {open.map((one) => (
                <tr key={one.sessionId}>
                  <td>{one.hostname}</td>
                  <td>
                    {one.user}
                    {one.watchers.length > 0 && (
                      <small class="under">{`${one.watchers.join(', ')} reads along`}</small>
                    )}
                  </td>
                  <td>{shownTime(one.startedAt)}</td>
                  <td class="narrow actions">
                    {one.user === user && allowed('execute') && (
                      <button type="button" onClick={() => attachTerminal(one, false)}>
                        Attach
                      </button>
                    )}
                    {allowed('administer') && (
                      <button type="button" onClick={() => attachTerminal(one, true)}>
                        Watch
                      </button>
                    )}
                    <button type="button" class="danger" onClick={() => end(one)}>
                      End
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      <div class="heading">
        <h1>Recordings</h1>
      </div>
      {sessions !== undefined && ended.length === 0 && <p class="empty">No session has been recorded yet.</p>}
      {ended.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>Host</th>
              <th>User</th>
              <th>Started</th>
              <th>Lasted</th>
              <th class="wide">Size</th>
              <th class="wide">End</th>
            </tr>
          </thead>
          <tbody>
            {ended.map((one) => (
              <tr key={one.sessionId}>
                <td>
                  <a class="name" href={hrefOf('sessions', one.sessionId)}>
                    {one.hostname}
                  </a>
                </td>
                <td>{one.user}</td>
                <td>{shownTime(one.startedAt)}</td>
                <td>{lasted(one)}</td>
                <td class="wide">{shownBytes(one.recordingBytes)}</td>
                <td class="wide">{one.reason ?? (one.exitCode === null ? '–' : `exit ${one.exitCode}`)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
