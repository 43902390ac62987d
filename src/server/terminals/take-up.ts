import type { TerminalRecord } from '../seams/records/terminal.ts'
import { Recording } from './recording/recording.ts'
import { TerminalSession } from './session.ts'
import { ended } from './session-end.ts'
import type { TerminalsState } from './state.ts'

/** Goes on with a session of another server or of a former process: rebuilds what is known of it from its recording. */
export async function takeUp(state: TerminalsState, record: TerminalRecord): Promise<TerminalSession> {
  const { clock, events, log, recordings, sessions } = state
  const { id, recorded } = record
  const session = new TerminalSession(record, null, clock, events)
  sessions.set(id, session)
  if (!recorded) return session
  try {
    const options = { events: state.recordingEvents(id) }
    const recall = (sequence: number, json: string) => session.recall(sequence, json)
    const { recording, size } = await Recording.takeUp(recordings, id, options, recall)
    session.recording = recording
    if (size) session.record = { ...session.record, ...size }
  } catch (error) {
    log.error({ err: error, sessionId: id }, 'a recording could not be taken up')
    session.finish(ended('its recording could not be read by the server that was to go on with it'))
  }
  return session
}
