import { randomBytes } from 'node:crypto'
import { RsmError } from '../../core/errors.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import { sha256 } from '../../disk/digest.ts'
import type { UserCaller } from '../storage/ports/caller.ts'
import type { TerminalSite } from '../storage/ports/cluster.ts'
import type { ShortLived } from '../storage/ports/short-lived.ts'
import type { NewTerminal } from '../storage/ports/terminals.ts'
import { adopt, adoptAll, adoptRegularly, elsewhere, isAwaited, kept } from './adopt.ts'
import { createHostSide, type HostSide } from './host-side.ts'
import { createOpener, sendOpen } from './opener.ts'
import { Saving, type TerminalsDependencies, type TerminalsState } from './state.ts'
import { startSweep } from './sweep.ts'
import type { LiveTerminal, TerminalEvents } from './terminal.ts'
import { ended, howEnded, type TerminalEnd } from './terminal-end.ts'

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

function createSite(state: TerminalsState): TerminalSite {
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

/** Milliseconds. A ticket is valid once (contract §7). */
const ticketLife = 30_000
const ticketPrefix = 'rsm_tkt_'

interface Admission {
  readonly sessionId: string
  readonly caller: UserCaller
  readonly watch: boolean
}

export interface Tickets {
  issue(admission: Admission): Promise<{ ticket: string; expiresAt: string }>
  /** Consumes a ticket; undefined if it is unknown, used or expired. */
  redeem(ticket: string): Promise<Admission | undefined>
}

/** Stores hashes only. */
export function createTickets(shortLived: ShortLived, clock: Clock): Tickets {
  return {
    async issue(admission) {
      const ticket = ticketPrefix + randomBytes(32).toString('base64url')
      await shortLived.put('ticket', sha256(ticket), admission, ticketLife)
      return { ticket, expiresAt: isoTime(clock.now() + ticketLife) }
    },
    redeem: async (ticket) => (await shortLived.take('ticket', sha256(ticket))) as Admission | undefined,
  }
}
