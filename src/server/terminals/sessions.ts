import { RsmError } from '../../core/errors.ts'
import { closeCodes } from '../../core/protocol/close-codes.ts'
import { isoTime } from '../clock.ts'
import type { TerminalRecord } from '../seams/records.ts'
import type { Attachment, AttachOptions, TerminalClient } from './client.ts'
import { createHostSide, type HostSide } from './host-side.ts'
import { createOpener, type NewSession, sendOpen } from './opener.ts'
import { Recording } from './recording/recording.ts'
import { Saving } from './saving.ts'
import { type SessionEvents, TerminalSession } from './session.ts'
import { ended } from './session-end.ts'
import type { TerminalsDependencies, TerminalsState } from './state.ts'
import { createTokenWatch } from './token-watch.ts'

const sweepInterval = 500

/** Owns the terminal sessions that are open: agents on one side, recordings and clients on the other (contract §7). */
export interface Terminals extends HostSide {
  /** Takes up the sessions that a former process left open. */
  recover(): Promise<void>
  /** Resolves when the host has opened it; `conflict` says why it has not. */
  open(session: NewSession): Promise<void>
  /** Whether it is open, or its client has not heard all of it yet. */
  isAttachable(sessionId: string): boolean
  /** Throws `gone` for one that is not attachable; `invalid` for an `after` beyond its output. */
  expect(sessionId: string, after: number | null): void
  attach(sessionId: string, client: TerminalClient, options: AttachOptions): Attachment
  /** Ends it, if it is open; resolves when that is on disk. `unavailable`: it has ended, and the store takes no more just now. */
  end(sessionId: string, reason: string): Promise<void>
  /** The record as it stands now, who reads along, and how much is recorded. */
  live(record: TerminalRecord): { record: TerminalRecord; watchers: string[]; recordingBytes: number }
  load(): { open: number }
  /** Closes recordings and sockets; the sessions stay open for the next process. */
  stop(): Promise<void>
}

export function createTerminals(deps: TerminalsDependencies): Terminals {
  const { store, hints, facts, clock, log } = deps
  const idleLimit = (deps.idleLimit ?? 3600) * 1000
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
    links: new Map(),
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
  const { openings } = state
  const tokens = createTokenWatch(store, clock)

  async function look(session: TerminalSession, now: number): Promise<void> {
    if (session.end) return session.forget(now)
    for (const { tokenId } of session.watchers.callers)
      if (!(await tokens.lives(tokenId))) session.watchers.dismiss((caller) => caller.tokenId === tokenId)
    const end = session.overdue(now, idleLimit)
    if (end) session.finish(end)
    else if (!(await tokens.holds(session))) endForToken(session)
  }

  async function sweep(): Promise<void> {
    const now = clock.monotonic()
    for (const session of sessions.values()) if (!openings.has(session.record.id)) await look(session, now)
    if (store.readOnlyReason === null) await saving.sweep()
    if (store.readOnlyReason === null)
      for (const id of state.unremoved) {
        await store.transact((tx) => tx.remove('terminals', id))
        state.unremoved.delete(id)
      }
  }
  let sweeping: Promise<void> | null = null
  const timer = setInterval(() => {
    sweeping ??= sweep()
      .catch((error: unknown) => log.error({ err: error }, 'terminals: sweep failed'))
      .finally(() => {
        sweeping = null
      })
  }, sweepInterval)
  timer.unref()

  const endForToken = (session: TerminalSession) =>
    session.finish(ended('the login that it hangs on has ended'), closeCodes.revoked)
  const unsubscribe = [
    hints.subscribe('tokenEnded', null, ({ id: tokenId }) => {
      for (const session of sessions.values()) {
        session.watchers.dismiss((caller) => caller.tokenId === tokenId)
        if (session.record.tokenId === tokenId) endForToken(session)
      }
    }),
    hints.subscribe('agentRevoked', null, ({ id: agentId }) => {
      for (const session of sessions.values())
        if (session.record.agentId === agentId)
          session.finish(ended("the token of the host's agent was revoked"), closeCodes.revoked)
    }),
  ]

  function attachable(id: string): TerminalSession {
    const session = sessions.get(id)
    if (session && !openings.has(id)) return session
    throw new RsmError('gone', `Terminal session ${id} has ended`)
  }

  /** Rebuilds what is known of a session from its recording. */
  async function takeUp(record: TerminalRecord): Promise<void> {
    const session = new TerminalSession(record, null, clock, events)
    sessions.set(record.id, session)
    if (!record.recorded) return
    try {
      const options = { events: state.recordingEvents(record.id) }
      const { recording, size } = await Recording.takeUp(
        deps.recordings,
        record.id,
        options,
        (sequence, json) => session.recall(sequence, json),
      )
      session.recording = recording
      if (size) session.record = { ...session.record, ...size }
    } catch (error) {
      log.error({ err: error, sessionId: record.id }, 'a recording could not be taken up')
      session.finish(ended('its recording could not be taken up after a restart of the server'))
    }
  }

  return {
    ...createHostSide(state),
    async recover() {
      for (const record of await store.find('terminals', 'status', 'OPEN')) await takeUp(record)
    },
    open: createOpener(state),
    isAttachable: (sessionId) => sessions.has(sessionId) && !openings.has(sessionId),
    expect: (sessionId, after) => attachable(sessionId).expect(after),

    attach(sessionId, client, options) {
      const { caller, ip } = client
      const session = attachable(sessionId)
      if (options.watch) return session.watch(client, options.after)
      // It hangs on the token of whoever uses it now.
      if (session.record.tokenId !== caller.tokenId && !session.end) {
        session.record = { ...session.record, tokenId: caller.tokenId }
        saving.changed(session)
      }
      facts.publish('terminal', { kind: 'attached', record: session.record, caller, ip })
      return session.attach(client, options.after)
    },

    async end(sessionId, reason) {
      sessions.get(sessionId)?.finish(ended(reason))
      await saving.settled(sessionId)
      if (saving.closing(sessionId))
        throw new RsmError('unavailable', `The end of session ${sessionId} could not be written down yet`, {
          retryAfter: 5,
        })
    },

    live(record) {
      const session = sessions.get(record.id) ?? saving.closing(record.id)
      const recordingBytes = session?.recording?.bytes ?? (session?.record ?? record).recordingBytes
      return { record: session?.record ?? record, watchers: session?.watchers.names ?? [], recordingBytes }
    },

    load: () => ({ open: [...sessions.values()].filter(({ end }) => end === null).length }),

    async stop() {
      clearInterval(timer)
      for (const end of unsubscribe) end()
      const stopping = new RsmError('unavailable', 'The server is shutting down', { retryAfter: 5 })
      for (const opening of openings.values()) opening.reject(stopping)
      await sweeping
      await saving.stop()
      for (const session of sessions.values()) {
        session.suspend()
        if (!session.end) await session.recording?.end()
      }
    },
  }
}
