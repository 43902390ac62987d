import { useEffect, useState } from 'preact/hooks'
import type { Terminal } from '../../core/protocol/http/terminals.ts'
import { call, errorText, send } from '../api.ts'
import { save, useTitle } from '../parts/browser.ts'
import { Fault, LongName, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { type Cast, parseCast } from './cast.ts'
import { Player } from './player.tsx'

/** Largest recording that a browser plays; the command line has no limit. */
const mostBytes = 64 * 1024 * 1024

interface Recording {
  terminal: Terminal
  cast: Cast
  file: Blob
}

async function read(sessionId: string, signal: AbortSignal): Promise<Recording> {
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
    read(sessionId, controller.signal).then(setRecording, (error: unknown) => {
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
