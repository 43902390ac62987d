import { RsmError } from '../../core/errors.ts'
import { isoTime } from '../../disk/clock.ts'
import type { TerminalSite } from '../storage/ports/cluster.ts'
import type { NewTerminal } from '../storage/ports/terminal-client.ts'
import { adoptAll, adoptRegularly, kept } from './adopt.ts'
import { createHostSide, type HostSide } from './host-side.ts'
import { sendOpen } from './opener.ts'
import { Saving } from './saving.ts'
import { createSite } from './site.ts'
import type { TerminalsDependencies, TerminalsState } from './state.ts'
import { startSweep } from './sweep.ts'
import type { LiveTerminal, TerminalEvents } from './terminal.ts'
import { ended, type TerminalEnd } from './terminal-end.ts'

/** Owns the open terminals: agents on one side, recordings and clients on the other (contract §7). */
export interface Terminals extends HostSide {
  /** Adopts terminals left open by an earlier process or a dead server. */
  recover(): Promise<void>
  /**
   * Opens a terminal on its host; resolves when it is open. Throws `conflict` with the reason if it cannot
   * be.
   */
  open(terminal: NewTerminal): Promise<void>
  /** The site of a session: this server or another; this one if no server has it. */
  site(sessionId: string): Promise<TerminalSite>
  load(): { open: number }
  /** Closes recordings and sockets; the terminals stay open for the next process. */
  stop(): Promise<void>
}

export function createTerminals(deps: TerminalsDependencies): Terminals {
  const { facts, clock, log } = deps
  const terminals = new Map<string, LiveTerminal>()
  const saving = new Saving(deps)

  const events: TerminalEvents = {
    reopen: (terminal, link, after) => void sendOpen(deps, link, terminal, after),
    ended(terminal, end) {
      const { record } = terminal
      const { id } = record
      const opening = state.openings.get(id)
      if (opening) return opening.reject(new RsmError('conflict', end.reason ?? 'The session has ended'))
      terminal.record = { ...record, ...end, status: 'CLOSED', endedAt: isoTime(clock.now()) }
      // An agent that reported the end releases it once that is durable; any other must end it now.
      if (!terminal.hasLeftHost) terminal.host.link?.send('TERMINAL_CLOSE', { sessionId: id })
      saving.ended(terminal)
    },
    resized: (terminal) => saving.changed(terminal),
    done({ record: { id } }) {
      terminals.delete(id)
      state.handedOver.set(id, clock.monotonic())
    },
    watched({ record }, { caller, ip }) {
      facts.publish('terminal', { kind: 'watched', record, caller, ip })
    },
  }

  const state: TerminalsState = {
    ...deps,
    terminals,
    handedOver: new Map(),
    leaving: new Set(),
    adopting: new Map(),
    openings: new Map(),
    unremoved: new Set(),
    agents: new Map(),
    saving,
    events,
    recordingOptions: (id) => ({
      ...deps.recordingBound,
      events: {
        written: () => terminals.get(id)?.moved(),
        failed(error) {
          log.error({ err: error, sessionId: id }, 'a recording could not be written')
          const why = (error as NodeJS.ErrnoException).code ?? 'unknown fault'
          const reason = `its recording could not be written (${why}), and unrecorded sessions are not allowed`
          void endHere(id, ended(reason))
        },
        nearsBound() {
          const then = deps.recordingBound?.continuesUnrecorded ? 'continues unrecorded' : 'ends'
          terminals
            .get(id)
            ?.warn(`the recording of this session is nearly full; the session ${then} when it is full`)
        },
        full() {
          const record = terminals.get(id)?.record
          if (record) facts.publish('terminal', { kind: 'full', record })
        },
      },
    }),
  }
  /** If another server reopened the recording, the session continues there. */
  async function endHere(id: string, end: TerminalEnd): Promise<void> {
    const terminal = await kept(state, id).catch(() => terminals.get(id))
    terminal?.finish(end)
  }
  const own = createSite(state)
  const stopServing = deps.relay?.serve(deps.member, own)
  const sweep = startSweep(state, (deps.idleLimit ?? 3600) * 1000)
  const adoption = adoptRegularly(state)

  return {
    ...createHostSide(state),
    recover: () => adoptAll(state),
    async open(terminal) {
      const { hostId } = terminal.record
      const holder = state.agents.has(hostId) ? null : await deps.links.holder(hostId)
      const other = holder && (await deps.relay?.at(holder.server))
      return (other ?? own).open(terminal)
    },
    async site(sessionId) {
      return terminals.has(sessionId) ? own : ((await deps.relay?.having(sessionId)) ?? own)
    },
    load: () => ({ open: [...terminals.values()].filter(({ end }) => end === null).length }),

    async stop() {
      stopServing?.()
      const stopping = new RsmError('unavailable', 'The server is shutting down', { retryAfter: 5 })
      for (const opening of state.openings.values()) opening.reject(stopping)
      await adoption.stop()
      await sweep.stop()
      await saving.stop()
      for (const terminal of terminals.values()) {
        terminal.suspend('the server is shutting down')
        if (!terminal.end) await terminal.recording?.end()
      }
    },
  }
}
