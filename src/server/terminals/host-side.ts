import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../../core/errors.ts'
import type { Payloads, TerminalClosed, TerminalOutput } from '../../core/protocol/messages.ts'
import { isDistrust } from '../../core/protocol/orders.ts'
import { reattachWindow } from '../../core/terminals/terminal.ts'
import { printable } from '../../core/text/printable.ts'
import type { AgentLink } from '../storage/ports/cluster.ts'
import { adopt, kept, meet } from './adopt.ts'
import { lostLink } from './opener.ts'
import type { TerminalsState } from './state.ts'
import type { LiveTerminal } from './terminal.ts'
import { ended } from './terminal-end.ts'

/** Milliseconds between attempts to take over a session. */
const takeOverPause = 500

/** Handles frames from agents about their terminals, and their connecting and disconnecting. */
export interface HostSide {
  linked(link: AgentLink): void
  unlinked(link: AgentLink): void
  opened(link: AgentLink, frameId: string, opened: Payloads['TERMINAL_OPENED']): Promise<void>
  /** `json` is the output's JSON text, if it came as JSON. */
  output(link: AgentLink, frameId: string, output: TerminalOutput, json?: Uint8Array): Promise<void>
  closed(link: AgentLink, frameId: string, closed: TerminalClosed): Promise<void>
  /** An ERROR of the agent; tells the client that its input was dropped or refused. */
  reported(link: AgentLink, error: Payloads['ERROR']): void
}

export function createHostSide(state: TerminalsState): HostSide {
  const { store, facts, clock, log, terminals, openings, agents } = state

  /** Whether a frame is for a terminal of this host; if not, the agent gets an ERROR. */
  async function isOwn(link: AgentLink, frameId: string, id: string): Promise<boolean> {
    const record = terminals.get(id)?.record ?? (await store.get('terminals', id))
    if (record?.hostId === link.hostId) return true
    link.stray(id)
    if (record) {
      const { agentId, hostId } = link
      facts.publish('foreignFrame', { agentId, hostId, type: 'terminal', id })
      const message = `terminal session ${id} does not belong to this host`
      link.send('ERROR', { code: 403, message, refId: frameId })
    } else {
      link.send('ERROR', { code: 404, message: `no terminal session ${id}`, refId: frameId })
      // Orphaned session: close it.
      link.send('TERMINAL_CLOSE', { sessionId: id })
    }
    return false
  }

  /** The agent forgets an exit code that is confirmed, so an unsaved one would be lost with this server. */
  const isUnsavedEnd = (id: string): boolean => state.saving.closing(id)?.hasLeftHost === true

  /** Whether the agent may forget the end of a session that is not open over its link. */
  async function isSettled(id: string): Promise<boolean> {
    const terminal = terminals.get(id) ?? state.saving.closing(id)
    if (terminal) return terminal.end !== null && !isUnsavedEnd(id)
    return (await store.get('terminals', id))?.status !== 'OPEN'
  }

  function openTerminal(link: AgentLink, id: string): LiveTerminal | null {
    const terminal = terminals.get(id)
    return terminal?.host.link === link && !terminal.end ? terminal : null
  }

  /** Whether the takeover of a session is decided: resumed here, or closed at the agent. */
  async function takeOver(link: AgentLink, sessionId: string): Promise<boolean> {
    if (isUnsavedEnd(sessionId)) return false
    try {
      const own = await kept(state, sessionId)
      if (own) {
        const isOpen = !own.end && own.record.hostId === link.hostId && !openings.has(sessionId)
        if (own.end || (own.host.link !== link && !isOpen)) link.send('TERMINAL_CLOSE', { sessionId })
        else if (own.host.link !== link && agents.get(link.hostId) === link) meet(own, link)
        return true
      }
      const previous = await state.relay?.having(sessionId)
      const given = previous && (await previous.handOver(sessionId, link.hostId))
      const record = given ?? (await store.get('terminals', sessionId))
      const isOwn = record?.status === 'OPEN' && record.hostId === link.hostId
      // The previous server released it meanwhile, or is storing its end.
      if (isOwn && previous && !given) return false
      const terminal = isOwn ? await adopt(state, sessionId, async () => record) : null
      if (!terminal) link.send('TERMINAL_CLOSE', { sessionId })
      else if (terminal.host.link !== link && !terminal.end) meet(terminal, link)
      if (terminal && given) state.saving.changed(terminal)
      return true
    } catch (error) {
      log.warn({ err: error, sessionId }, 'a terminal session could not be taken over')
      return false
    }
  }

  /**
   * Retries: the session may be at the agent's previous server, or at one that is not yet known to be dead.
   */
  async function takeOverSoon(link: AgentLink, sessionId: string): Promise<void> {
    const until = clock.monotonic() + reattachWindow
    while (agents.get(link.hostId) === link && clock.monotonic() < until) {
      if (await takeOver(link, sessionId)) return
      await delay(takeOverPause, undefined, { ref: false })
    }
  }

  return {
    linked(link) {
      agents.set(link.hostId, link)
      const ids = new Set(link.hello?.terminals?.map(({ sessionId }) => sessionId))
      for (const { record } of terminals.values())
        if (record.hostId === link.hostId && !openings.has(record.id)) ids.add(record.id)
      for (const id of ids) void takeOverSoon(link, id)
    },

    unlinked(link) {
      if (agents.get(link.hostId) === link) agents.delete(link.hostId)
      for (const terminal of terminals.values()) {
        if (terminal.host.link !== link) continue
        terminal.unlinked()
        openings.get(terminal.record.id)?.reject(lostLink(terminal.record.hostname))
      }
    },

    async opened(link, frameId, { sessionId, inputKey, typed }) {
      const terminal = openTerminal(link, sessionId)
      if (!terminal) return void (await isOwn(link, frameId, sessionId))
      if (!terminal.taken(inputKey, typed)) {
        link.send('ERROR', { code: 400, message: 'inputKey is not an X25519 key', refId: frameId })
        return terminal.finish(ended('its host answered with an invalid key'))
      }
      // Before the next frame, which may already report the end.
      openings.get(sessionId)?.resolve()
    },

    async output(link, frameId, { sessionId, data, sequence }, json) {
      const terminal = openTerminal(link, sessionId)
      if (terminal) terminal.output(data, sequence, json)
      // Output that crosses the end of its terminal is dropped.
      else await isOwn(link, frameId, sessionId)
    },

    async closed(link, frameId, { sessionId, exitCode, signal, reason: said }) {
      const reason = said && printable(said)
      if (reason && isDistrust(reason)) {
        const { agentId, hostId } = link
        facts.publish('distrusted', { agentId, hostId, taskId: null, message: reason })
      }
      const terminal = openTerminal(link, sessionId)
      if (!terminal) {
        const own = await isOwn(link, frameId, sessionId)
        if (own && (await isSettled(sessionId))) link.send('TERMINAL_CLOSE', { sessionId })
        return
      }
      const { hostname } = terminal.record
      const opening = openings.get(sessionId)
      if (opening)
        return opening.reject(new RsmError('conflict', reason ?? `${hostname} did not open a terminal`))
      terminal.hasLeftHost = true
      terminal.finish({ exitCode, signal, reason })
    },

    reported(link, { code, sessionId }) {
      const input = sessionId === undefined ? undefined : openTerminal(link, sessionId)?.host.input
      if (code === 413) input?.dropped(clock.monotonic())
      else if (code === 403) input?.refused(clock.monotonic())
    },
  }
}
