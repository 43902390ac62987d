import { RsmError } from '../../core/errors.ts'
import type { Payloads, TerminalClosed, TerminalOutput } from '../../core/protocol/messages.ts'
import { isDistrust } from '../../core/signing.ts'
import { printable } from '../../core/text/printable.ts'
import type { AgentLink } from '../engine/agent-link.ts'
import { lostLink } from './opener.ts'
import type { TerminalSession } from './session.ts'
import { ended } from './session-end.ts'
import type { TerminalsState } from './state.ts'
import { takeUp } from './take-up.ts'

/** What agents send of their sessions, and their links that come and go. */
export interface HostSide {
  linked(link: AgentLink): void
  unlinked(link: AgentLink): void
  opened(link: AgentLink, frameId: string, opened: Payloads['TERMINAL_OPENED']): Promise<void>
  /** `json` is the text of the output as JSON, where it came so. */
  output(link: AgentLink, frameId: string, output: TerminalOutput, json?: Uint8Array): Promise<void>
  closed(link: AgentLink, frameId: string, closed: TerminalClosed): Promise<void>
  /** An ERROR of the agent: of input that it has dropped who typed it hears. */
  reported(link: AgentLink, error: Payloads['ERROR']): void
}

export function createHostSide(state: TerminalsState): HostSide {
  const { store, facts, clock, log, sessions, openings, agents } = state

  /** Whether a frame is for a session of this host; else the agent hears why not. */
  async function isOwn(link: AgentLink, frameId: string, id: string): Promise<boolean> {
    const record = sessions.get(id)?.record ?? (await store.get('terminals', id))
    if (record?.hostId === link.hostId) return true
    if (record) {
      const { agentId, hostId } = link
      facts.publish('foreignFrame', { agentId, hostId, type: 'terminal', id })
      const message = `terminal session ${id} is not one of this host`
      link.send('ERROR', { code: 403, message, refId: frameId })
    } else {
      link.send('ERROR', { code: 404, message: `no terminal session ${id}`, refId: frameId })
      // Whatever runs there for it is nobody's.
      link.send('TERMINAL_CLOSE', { sessionId: id })
    }
    return false
  }

  /** A session that goes on, over this link. */
  function present(link: AgentLink, id: string): TerminalSession | null {
    const session = sessions.get(id)
    return session?.host.link === link && !session.end ? session : null
  }

  /** A session that the agent has and this server not: it may be with the server that the agent was linked to before. */
  async function takeOver(link: AgentLink, sessionId: string): Promise<void> {
    try {
      const record = await (await state.relay.having(sessionId))?.handOver(sessionId, link.hostId)
      if (!record) return void link.send('TERMINAL_CLOSE', { sessionId })
      const session = await takeUp(state, record)
      state.saving.changed(session)
      const now = agents.get(link.hostId)
      if (now && !session.end) session.linked(now)
    } catch (error) {
      log.error({ err: error, sessionId }, 'a terminal session could not be taken over')
    }
  }

  return {
    linked(link) {
      agents.set(link.hostId, link)
      const named = new Set(link.hello?.terminals?.map(({ sessionId }) => sessionId))
      for (const session of sessions.values()) {
        const { id, hostId } = session.record
        if (hostId !== link.hostId || session.end || openings.has(id)) continue
        if (named.has(id)) session.linked(link)
        else session.finish(ended("the host's agent has restarted, and its terminals have ended"))
      }
      for (const sessionId of named) {
        const session = sessions.get(sessionId)
        if (!session) void takeOver(link, sessionId)
        else if (session.end || session.host.link !== link) link.send('TERMINAL_CLOSE', { sessionId })
      }
    },

    unlinked(link) {
      if (agents.get(link.hostId) === link) agents.delete(link.hostId)
      for (const session of sessions.values()) {
        if (session.host.link !== link) continue
        session.unlinked()
        openings.get(session.record.id)?.reject(lostLink(session.record.hostname))
      }
    },

    async opened(link, frameId, { sessionId, inputKey }) {
      const session = present(link, sessionId)
      if (!session) return void (await isOwn(link, frameId, sessionId))
      if (!session.taken(inputKey)) {
        link.send('ERROR', { code: 400, message: 'inputKey is no X25519 key', refId: frameId })
        return session.finish(ended('its host answered with a key that is none'))
      }
      // Before the next frame, which may be its end already.
      openings.get(sessionId)?.resolve()
    },

    async output(link, frameId, { sessionId, data, sequence }, json) {
      const session = present(link, sessionId)
      if (session) session.output(data, sequence, json)
      // What crosses the end of its session is dropped.
      else await isOwn(link, frameId, sessionId)
    },

    async closed(link, frameId, { sessionId, exitCode, signal, reason: said }) {
      const reason = said && printable(said)
      if (reason && isDistrust(reason)) {
        const { agentId, hostId } = link
        facts.publish('distrusted', { agentId, hostId, taskId: null, message: reason })
      }
      const session = present(link, sessionId)
      if (!session) {
        // It answers an end that came from here, or was told before: the agent need not keep it.
        if (await isOwn(link, frameId, sessionId)) link.send('TERMINAL_CLOSE', { sessionId })
        return
      }
      const { hostname } = session.record
      const opening = openings.get(sessionId)
      if (opening) return opening.reject(new RsmError('conflict', reason ?? `${hostname} opened no terminal`))
      session.hasLeftHost = true
      session.finish({ exitCode, signal, reason })
    },

    reported(link, { code, sessionId }) {
      const input = sessionId === undefined ? undefined : present(link, sessionId)?.host.input
      if (code === 413) input?.dropped(clock.monotonic())
      else if (code === 403) input?.refused(clock.monotonic())
    },
  }
}
