import { mendable, RsmError } from '../../core/errors.ts'
import { reattachWindow } from '../../core/terminals/terminal.ts'
import { type Repeated, repeat } from '../../disk/clock.ts'
import type { AgentLink } from '../storage/ports/cluster.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import { Recording, readRecorded } from './recording.ts'
import type { TerminalsState } from './state.ts'
import { LiveTerminal } from './terminal.ts'
import { ended, isCutShort } from './terminal-end.ts'

/** Milliseconds between checks for orphaned sessions: most are adopted by the server their agent links to. */
const checkInterval = 30_000

/**
 * Resumes an open session as returned by `find`, or replays the rest of an ended one whose client may return;
 * else null. Concurrent calls for a session share one result. Errors: `unavailable` while another server owns
 * it.
 */
export async function adopt(
  state: TerminalsState,
  id: string,
  find: () => Promise<TerminalRecord | null | undefined> = () => state.store.get('terminals', id),
): Promise<LiveTerminal | null> {
  const { adopting, saving } = state
  const pending = adopting.get(id)
  if (pending) return pending
  const adopt = async () => {
    const own = await kept(state, id)
    if (own) return own
    const record = await find()
    if (!record || saving.closing(id) || state.unremoved.has(id)) return null
    if (record.status === 'OPEN') return resume(state, record)
    return isAwaited(state, record) ? recallEnded(state, record) : null
  }
  const adopted = adopt()
  adopting.set(id, adopted)
  return adopted.finally(() => adopting.delete(id))
}

/** Adopts orphaned sessions: those of dead servers and of an earlier process. */
export async function adoptAll(state: TerminalsState): Promise<void> {
  const { store, relay, terminals, log } = state
  for (const { id } of await store.find('terminals', 'status', 'OPEN')) {
    if (terminals.has(id)) continue
    try {
      if (!(await relay?.having(id))) await adopt(state, id)
    } catch (error) {
      log.warn({ err: error, sessionId: id }, 'an open terminal session could not be taken up')
    }
  }
}

export const adoptRegularly = (state: TerminalsState): Repeated =>
  repeat(
    checkInterval,
    () => adoptAll(state),
    (error) => state.log.warn({ err: error }, 'could not look for orphaned sessions'),
  )

/**
 * The live terminal on this server, or null. Releases it if another server adopted it after this one's lease
 * expired. Throws if the store is unreachable.
 */
export async function kept(state: TerminalsState, id: string): Promise<LiveTerminal | null> {
  const { terminals, openings, saving, ownership, member, log } = state
  const terminal = terminals.get(id)
  if (!terminal || terminal.end || openings.has(id)) return terminal ?? null
  if (await ownership.holds(member, id)) return terminals.get(id) ?? null
  // A concurrent call may have released it.
  if (terminals.get(id) === terminal) {
    log.info({ sessionId: id }, 'a terminal session continues on another server')
    terminals.delete(id)
    saving.forget(terminal)
    terminal.suspend('the session continues on another server')
    // The agent resends output that is not written yet.
    void terminal.recording?.end().catch(() => undefined)
  }
  return null
}

/** Error for a session that may be moving between servers. */
export const elsewhere = (id: string): RsmError =>
  new RsmError('unavailable', `The server of terminal session ${id} cannot be reached just now`, {
    retryAfter: 1,
  })

/** Resumes a session that no server has, and links it if its host's agent is connected here. */
async function resume(state: TerminalsState, record: TerminalRecord): Promise<LiveTerminal> {
  const { id, hostId } = record
  if (state.leaving.has(id) || (await state.ownership.claim(state.member, [id])).length === 0)
    throw elsewhere(id)
  const terminal = await takeUp(state, record)
  const link = state.agents.get(hostId)
  if (link && !terminal.end) meet(terminal, link)
  return terminal
}

/** Whether its program ended so recently that a disconnected client may still reconnect (contract §7). */
export function isAwaited({ clock, handedOver }: TerminalsState, record: TerminalRecord): boolean {
  const { id, status, endedAt, recorded } = record
  if (status === 'OPEN' || isCutShort(record) || !recorded || handedOver.has(id)) return false
  return clock.now() - Date.parse(endedAt ?? '') <= reattachWindow
}

/**
 * Rebuilds a terminal of another server or an earlier process from its recording. Errors: `unavailable` while
 * the store is unreachable; the next check retries.
 */
async function takeUp(state: TerminalsState, record: TerminalRecord): Promise<LiveTerminal> {
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
  // Registered only now: before, it lacks output that its client may have missed.
  terminals.set(id, terminal)
  return terminal
}

/**
 * Replays what a client may have missed of an ended session whose server is gone. Null if the recording is
 * incomplete, because it reached its limit, or is unreadable. Errors: `unavailable` while the store is
 * unreachable; the client retries.
 */
async function recallEnded(state: TerminalsState, record: TerminalRecord): Promise<LiveTerminal | null> {
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

/** Reconciles a terminal of this server with its host's agent, which has just linked. */
export function meet(terminal: LiveTerminal, link: AgentLink): void {
  if (isNamedBy(link, terminal.record.id)) terminal.linked(link)
  else terminal.finish(ended("the host's agent has restarted, and its terminals have ended"))
}

const isNamedBy = (link: AgentLink, id: string): boolean =>
  link.hello?.terminals?.some(({ sessionId }) => sessionId === id) === true
