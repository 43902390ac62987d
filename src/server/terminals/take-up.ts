import { mendable } from '../../core/errors.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import { readRecorded } from './recording/recorded.ts'
import { Recording } from './recording/recording.ts'
import type { TerminalsState } from './state.ts'
import { LiveTerminal } from './terminal.ts'
import { ended } from './terminal-end.ts'

/**
 * Has what a client may have missed of a session whose program has ended, when the server that heard of the end is gone:
 * its recording is whole. Null where the recording is not, as it came to its bound or can't be read. Errors: `unavailable` while
 * the store can't be reached: the client asks again.
 */
export async function recallEnded(
  state: TerminalsState,
  record: TerminalRecord,
): Promise<LiveTerminal | null> {
  const { clock, events, log, recordings, terminals } = state
  const { id, exitCode, signal, reason } = record
  const terminal = new LiveTerminal(record, null, clock, events)
  const recall = (sequence: number, json: string) => terminal.recall(sequence, json)
  try {
    const { state: recorded } = await readRecorded(recordings.content(id), recall)
    if (recorded.isFull) return null
  } catch (error) {
    if (mendable(error)) throw error
    log.warn({ err: error, sessionId: id }, 'the rest of a terminal session could not be read')
    return null
  }
  terminal.hadEnded({ exitCode, signal, reason })
  terminals.set(id, terminal)
  return terminal
}

/**
 * Goes on with a terminal of another server or of a former process: rebuilds what is known of it from its recording. Errors:
 * `unavailable` while the store can't be reached; whoever looks next tries again.
 */
export async function takeUp(state: TerminalsState, record: TerminalRecord): Promise<LiveTerminal> {
  const { clock, events, log, recordings, terminals } = state
  const { id, recorded } = record
  const terminal = new LiveTerminal(record, null, clock, events)
  try {
    if (recorded) {
      const recall = (sequence: number, json: string) => terminal.recall(sequence, json)
      const { recording, size } = await Recording.takeUp(recordings, id, state.recordingOptions(id), recall)
      terminal.recording = recording
      if (size) terminal.record = { ...terminal.record, ...size }
    }
  } catch (error) {
    if (mendable(error)) throw error
    log.error({ err: error, sessionId: id }, 'a recording could not be taken up')
    terminal.finish(ended('its recording could not be read by the server that took it over'))
  }
  // Before that it has not all that its client may miss.
  terminals.set(id, terminal)
  return terminal
}
