import { RsmError } from '../../core/errors.ts'
import type { TerminalSite } from '../storage/ports/cluster.ts'
import { adopt, elsewhere, isAwaited } from './adopt.ts'
import { createOpener } from './opener.ts'
import type { TerminalsState } from './state.ts'
import type { LiveTerminal } from './terminal.ts'
import { ended, howEnded } from './terminal-end.ts'

export function createSite(state: TerminalsState): TerminalSite {
  const { terminals, openings, saving, facts } = state

  const attachable = (id: string): LiveTerminal | undefined =>
    openings.has(id) ? undefined : terminals.get(id)

  async function whyNot(id: string): Promise<RsmError> {
    const record = saving.closing(id)?.record ?? (await state.store.get('terminals', id))
    if (record?.status === 'OPEN') return elsewhere(id)
    return new RsmError('gone', `Terminal session ${id} has ended${record ? `: ${howEnded(record)}` : ''}`)
  }

  return {
    open: createOpener(state),
    has: async (id) => terminals.has(id) || saving.closing(id) !== undefined,
    async isAttachable(id) {
      if (terminals.has(id)) return !openings.has(id)
      // The server of an orphaned session is gone: attaching here adopts it.
      const record = await state.store.get('terminals', id)
      return record !== undefined && (record.status === 'OPEN' || isAwaited(state, record))
    },
    async expect(id, after) {
      await adopt(state, id)
      const terminal = attachable(id)
      if (!terminal) throw await whyNot(id)
      terminal.expect(after)
    },

    attach(id, client, options) {
      const { caller, ip } = client
      const terminal = attachable(id)
      // `expect` found it a moment ago; a retry learns where it is, or how it ended.
      if (!terminal) throw elsewhere(id)
      if (options.watch) return terminal.watch(client, options.after)
      // The session depends on the token of its current client.
      if (terminal.record.tokenId !== caller.tokenId && !terminal.end) {
        terminal.record = { ...terminal.record, tokenId: caller.tokenId }
        saving.changed(terminal)
      }
      facts.publish('terminal', { kind: 'attached', record: terminal.record, caller, ip })
      return terminal.attach(client, options.after)
    },

    async end(id, reason) {
      const terminal = await adopt(state, id)
      terminal?.finish(ended(reason))
      await saving.settled(id)
      if (saving.closing(id))
        throw new RsmError('unavailable', `The end of session ${id} could not be stored yet`, {
          retryAfter: 5,
        })
    },

    async live(record) {
      const terminal = terminals.get(record.id) ?? saving.closing(record.id)
      const recordingBytes = terminal?.recording?.bytes ?? (terminal?.record ?? record).recordingBytes
      return { record: terminal?.record ?? record, watchers: terminal?.watchers.names ?? [], recordingBytes }
    },

    async handOver(id, hostId) {
      const terminal = terminals.get(id)
      if (terminal?.record.hostId !== hostId || terminal.end || openings.has(id)) return null
      terminals.delete(id)
      state.leaving.add(id)
      saving.forget(terminal)
      terminal.suspend('the session continues on another server')
      try {
        await terminal.recording?.end()
        await state.ownership.release(state.member, [id])
      } finally {
        state.leaving.delete(id)
      }
      return terminal.record
    },
  }
}
