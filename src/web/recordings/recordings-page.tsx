import { useEffect, useState } from 'preact/hooks'
import { showBytes } from '../../cli/text/amounts.ts'
import { showDuration } from '../../cli/text/time.ts'
import type { Terminal } from '../../core/protocol/http/terminals.ts'
import { all, call, errorText, send, usePolled } from '../api.ts'
import { save, useTitle } from '../parts/browser.ts'
import { Fault, LongName, Question, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { allowed, session } from '../session.ts'
import { attachTerminal } from '../terminals/open-terminals.ts'
import { type Cast, parseCast } from './cast.ts'
import { Player } from './player.tsx'

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
  return endedAt === null ? '–' : showDuration(Date.parse(endedAt) - Date.parse(startedAt))
}

export function RecordingsPage() {
  useTitle('Recordings')
  const { value: sessions, fault, again } = usePolled(read, [])
  const [refused, setRefused] = useState('')
  const [ending, setEnding] = useState<Terminal | undefined>()
  const user = session.get()?.user.username

  function end({ sessionId }: Terminal): void {
    setEnding(undefined)
    setRefused('')
    call('DELETE', `api/terminals/${encodeURIComponent(sessionId)}`).then(again, (error: unknown) =>
      setRefused(errorText(error)),
    )
  }

  const { open = [], ended = [] } = sessions ?? {}
  return (
    <section class="page">
      <div class="heading">
        <h1>{open.length > 0 ? 'Open now' : 'Recordings'}</h1>
      </div>
      <Fault text={refused || fault} />
      {open.length > 0 && (
        <>
          <table class="rows">
            <thead>
              <tr>
                <th>Host</th>
                <th class="w-user">User</th>
                <th class="w-time">Since</th>
                <th class="w-actions" aria-label="Actions" />
              </tr>
            </thead>
            <tbody>
              {open.map((one) => (
                <tr key={one.sessionId}>
                  <td class="whole-line">
                    <LongName text={one.hostname} />
                  </td>
                  <td data-label="User">
                    {one.user}
                    {one.watchers.length > 0 && (
                      <small class="under">{`watched by ${one.watchers.join(', ')}`}</small>
                    )}
                  </td>
                  <td data-label="Since">
                    <Time at={one.startedAt} />
                  </td>
                  <td class="actions">
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
                    <button type="button" class="danger" onClick={() => setEnding(one)}>
                      End
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {open.length > 0 && (
        <div class="heading">
          <h2>Recordings</h2>
        </div>
      )}
      {sessions !== undefined && ended.length === 0 && <p class="empty">No session has been recorded yet.</p>}
      {ended.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>Host</th>
              <th class="w-user">User</th>
              <th class="w-time">Started</th>
              <th class="w-took">Lasted</th>
              <th class="w-took wide">Size</th>
              <th class="w-status wide">End</th>
            </tr>
          </thead>
          <tbody>
            {ended.map((one) => (
              <tr key={one.sessionId}>
                <td class="whole-line">
                  <a class="name" href={hrefOf('sessions', one.sessionId)}>
                    <LongName text={one.hostname} />
                  </a>
                </td>
                <td data-label="User" class="clip" title={one.user}>
                  {one.user}
                </td>
                <td data-label="Started">
                  <Time at={one.startedAt} />
                </td>
                <td data-label="Lasted">{lasted(one)}</td>
                <td class="wide">{showBytes(one.recordingBytes)}</td>
                <td class="wide">{one.reason ?? (one.exitCode === null ? '–' : `exit ${one.exitCode}`)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {ending && (
        <Question
          title={`End the session of ${ending.user} on ${ending.hostname}?`}
          yes="End the session"
          no="Keep it open"
          isDangerous
          onYes={() => end(ending)}
          onNo={() => setEnding(undefined)}
        >
          <p>Everything that runs in it ends too.</p>
        </Question>
      )}
    </section>
  )
}

/** Largest recording that a browser plays; the command line has no limit. */
const mostBytes = 64 * 1024 * 1024

interface Recording {
  terminal: Terminal
  cast: Cast
  file: Blob
}

async function readRecording(sessionId: string, signal: AbortSignal): Promise<Recording> {
  const path = `api/terminals/${encodeURIComponent(sessionId)}`
  const terminal = await call<Terminal>('GET', path, { signal })
  if (terminal.recordingBytes > mostBytes)
    throw new Error(`This recording is too large for a browser: rsm recordings play ${sessionId}`)
  const file = await (await send('GET', `${path}/recording`, { signal })).blob()
  return { terminal, cast: parseCast(await file.text()), file }
}

export function RecordingPage({ sessionId }: { sessionId: string }) {
  useTitle('Recording')
  const [recording, setRecording] = useState<Recording | undefined>()
  const [fault, setFault] = useState('')
  useEffect(() => {
    const controller = new AbortController()
    readRecording(sessionId, controller.signal).then(setRecording, (error: unknown) => {
      if (!controller.signal.aborted) setFault(errorText(error))
    })
    return () => controller.abort()
  }, [sessionId])
  return (
    <section class="page whole">
      <div class="heading">
        <h1>{recording === undefined ? 'Recording' : <LongName text={recording.terminal.hostname} />}</h1>
        {recording && (
          <span class="hint">
            {recording.terminal.user} · <Time at={recording.terminal.startedAt} />
          </span>
        )}
        <span class="spring" />
        {recording && (
          <button type="button" onClick={() => save(recording.file, `${sessionId}.cast`)}>
            Download
          </button>
        )}
        <a href={hrefOf('sessions')}>All recordings</a>
      </div>
      {recording === undefined && fault === '' && <p class="hint">Loading …</p>}
      <Fault text={fault} />
      {recording && <Player cast={recording.cast} />}
    </section>
  )
}
