import { RsmError } from '../../core/errors.ts'
import type { TerminalSite } from '../seams/relay.ts'
import { createOpener } from './opener.ts'
import type { TerminalSession } from './session.ts'
import { ended } from './session-end.ts'
import type { TerminalsState } from './state.ts'

/** The sessions that this server has. */
export function createSite(state: TerminalsState): TerminalSite {
  const { sessions, openings, saving, facts } = state

  function attachable(id: string): TerminalSession {
    const session = sessions.get(id)
    if (session && !openings.has(id)) return session
    throw new RsmError('gone', `Terminal session ${id} has ended`)
  }

  return {
    open: createOpener(state),
    has: async (id) => sessions.has(id) || saving.closing(id) !== undefined,
    isAttachable: async (id) => sessions.has(id) && !openings.has(id),
    expect: async (id, after) => attachable(id).expect(after),

    attach(id, client, options) {
      const { caller, ip } = client
      const session = attachable(id)
      if (options.watch) return session.watch(client, options.after)
      // It hangs on the token of whoever uses it now.
      if (session.record.tokenId !== caller.tokenId && !session.end) {
        session.record = { ...session.record, tokenId: caller.tokenId }
        saving.changed(session)
      }
      facts.publish('terminal', { kind: 'attached', record: session.record, caller, ip })
      return session.attach(client, options.after)
    },

    async end(id, reason) {
      sessions.get(id)?.finish(ended(reason))
      await saving.settled(id)
      if (saving.closing(id))
        throw new RsmError('unavailable', `The end of session ${id} could not be written down yet`, {
          retryAfter: 5,
        })
    },

    async live(record) {
      const session = sessions.get(record.id) ?? saving.closing(record.id)
      const recordingBytes = session?.recording?.bytes ?? (session?.record ?? record).recordingBytes
      return { record: session?.record ?? record, watchers: session?.watchers.names ?? [], recordingBytes }
    },

    async handOver(id, hostId) {
      const session = sessions.get(id)
      if (session?.record.hostId !== hostId || session.end || openings.has(id)) return null
      sessions.delete(id)
      saving.forget(session)
      session.suspend('the session goes on at another server')
      await session.recording?.end()
      return session.record
    },
  }
}
