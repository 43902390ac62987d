import { RsmError } from '../../core/errors.ts'
import { isoTime } from '../clock.ts'
import type { TerminalSite } from '../seams/relay.ts'
import type { NewSession } from './client.ts'
import { createHostSide, type HostSide } from './host-side.ts'
import { sendOpen } from './opener.ts'
import { Saving } from './saving.ts'
import type { SessionEvents, TerminalSession } from './session.ts'
import { ended } from './session-end.ts'
import { createSite } from './site.ts'
import type { TerminalsDependencies, TerminalsState } from './state.ts'
import { startSweep } from './sweep.ts'
import { takeUp } from './take-up.ts'

/** Owns the terminal sessions that are open: agents on one side, recordings and clients on the other (contract §7). */
export interface Terminals extends HostSide {
  /** Takes up the sessions that a former process left open. */
  recover(): Promise<void>
  /** Opens one where the agent of its host is linked; resolves when the host has. `conflict` says why it has not. */
  open(session: NewSession): Promise<void>
  /** Where a session is: here, or with another server. One that nobody has is asked for here. */
  site(sessionId: string): Promise<TerminalSite>
  load(): { open: number }
  /** Closes recordings and sockets; the sessions stay open for the next process. */
  stop(): Promise<void>
}

export function createTerminals(deps: TerminalsDependencies): Terminals {
  const { store, facts, clock, log } = deps
  const sessions = new Map<string, TerminalSession>()
  const saving = new Saving(deps)

  const events: SessionEvents = {
    reopen: (session, link, after) => void sendOpen(deps, link, session, after),
    ended(session, end) {
      const { record } = session
      const { id } = record
      const opening = state.openings.get(id)
      if (opening) return opening.reject(new RsmError('conflict', end.reason ?? 'The session has ended'))
      session.record = { ...record, ...end, status: 'CLOSED', endedAt: isoTime(clock.now()) }
      // The agent that has ended it lets it go once that is on disk; any other is told to end it now.
      if (!session.hasLeftHost) session.host.link?.send('TERMINAL_CLOSE', { sessionId: id })
      saving.ended(session)
    },
    resized: (session) => saving.changed(session),
    done: ({ record: { id } }) => void sessions.delete(id),
    watched({ record }, { caller, ip }) {
      facts.publish('terminal', { kind: 'watched', record, caller, ip })
    },
  }

  const state: TerminalsState = {
    ...deps,
    sessions,
    openings: new Map(),
    unremoved: new Set(),
    agents: new Map(),
    saving,
    events,
    recordingEvents: (id) => ({
      written: () => sessions.get(id)?.moved(),
      failed(error) {
        log.error({ err: error, sessionId: id }, 'a recording could not be written')
        const why = (error as NodeJS.ErrnoException).code ?? 'unknown fault'
        const reason = `its recording could not be written (${why}), and no session continues unrecorded`
        sessions.get(id)?.finish(ended(reason))
      },
    }),
  }
  const own = createSite(state)
  const stopServing = deps.relay.serve(deps.member, own)
  const sweep = startSweep(state, (deps.idleLimit ?? 3600) * 1000)

  return {
    ...createHostSide(state),
    async recover() {
      for (const record of await store.find('terminals', 'status', 'OPEN'))
        if (!(await deps.relay.having(record.id))) await takeUp(state, record)
    },
    async open(session) {
      const { hostId } = session.record
      const holder = state.agents.has(hostId) ? null : await deps.links.holder(hostId)
      const other = holder && (await deps.relay.at(holder.server))
      return (other ?? own).open(session)
    },
    async site(sessionId) {
      return sessions.has(sessionId) ? own : ((await deps.relay.having(sessionId)) ?? own)
    },
    load: () => ({ open: [...sessions.values()].filter(({ end }) => end === null).length }),

    async stop() {
      stopServing()
      const stopping = new RsmError('unavailable', 'The server is shutting down', { retryAfter: 5 })
      for (const opening of state.openings.values()) opening.reject(stopping)
      await sweep.stop()
      await saving.stop()
      for (const session of sessions.values()) {
        session.suspend('the server is shutting down')
        if (!session.end) await session.recording?.end()
      }
    },
  }
}
