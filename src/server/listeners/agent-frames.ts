import { closeCodes } from '../../core/protocol/close-codes.ts'
import type { Payloads, ScriptComplete } from '../../core/protocol/messages.ts'
import { isDistrust } from '../../core/protocol/orders.ts'
import { Allowance, LineBudget } from '../../core/rates.ts'
import { printable } from '../../core/text/printable.ts'
import { greetingOf } from '../hosts/reported.ts'
import type { AgentSocket, SocketEvents } from './agent-socket.ts'
import type { WebSocketDependencies } from './dependencies.ts'

/** Milliseconds in which closing an agent's links for stray frames is recorded once. */
const noteStraysEvery = 60_000

/** Routes frames from agents to presence, engine and terminals. */
export function createAgentFrames({
  engine,
  terminals,
  presence,
  facts,
  clock,
  log,
}: WebSocketDependencies): SocketEvents {
  const takenUp = new Set<AgentSocket>()
  const reported = new LineBudget()
  const strayed = new Allowance(1, noteStraysEvery)

  async function takeUp(link: AgentSocket): Promise<void> {
    takenUp.add(link)
    terminals.linked(link)
    // Presence first: a starting server reads the row or is notified of the link.
    await engine.linked(link, () => {
      if (link.isOpen) presence.connected(link.hostId, true, undefined, link.claim)
    })
  }

  function noteDistrust({ agentId, hostId }: AgentSocket, { taskId, exitCode, error }: ScriptComplete): void {
    if (exitCode === 126 && error && isDistrust(error))
      facts.publish('distrusted', { agentId, hostId, taskId, message: printable(error) })
  }

  function noteReported({ agentId, hostId }: AgentSocket, error: Payloads['ERROR']): void {
    const { message } = error
    if (isDistrust(message))
      facts.publish('distrusted', { agentId, hostId, taskId: null, message: printable(message) })
    const leftOut = reported.take(agentId, clock.monotonic())
    if (leftOut !== null) log.warn({ agentId, error, leftOut }, 'an agent reports an error')
  }

  return {
    proven(link) {
      // An rsm agent must send HELLO first.
      if (link.ofOurs) return
      presence.greeted(link.hostId, null)
      takeUp(link).catch((error: unknown) => {
        log.error({ err: error }, 'a link could not be taken up')
        link.close(closeCodes.overloaded, 'the server cannot take this just now')
      })
    },
    hello(link, hello) {
      presence.greeted(link.hostId, greetingOf(hello))
      return takeUp(link)
    },
    async message(link, message, json) {
      switch (message.type) {
        case 'SCRIPT_RECEIVED':
          return engine.received(link, message.id, message.payload)
        case 'SCRIPT_PHASE':
          return engine.phase(link, message.id, message.payload)
        case 'SCRIPT_OUTPUT':
          return engine.output(link, message.id, message.payload, json)
        case 'SCRIPT_COMPLETE':
          noteDistrust(link, message.payload)
          return engine.complete(link, message.id, message.payload)
        case 'ERROR':
          noteReported(link, message.payload)
          return terminals.reported(link, message.payload)
        case 'TERMINAL_OPENED':
          return terminals.opened(link, message.id, message.payload)
        case 'TERMINAL_OUTPUT':
          return terminals.output(link, message.id, message.payload, json)
        case 'TERMINAL_CLOSED':
          return terminals.closed(link, message.id, message.payload)
      }
    },
    strayed({ agentId, hostId }) {
      if (strayed.take(agentId, clock.monotonic()) > 0) return
      log.warn({ agentId, hostId }, 'link closed: too many stray frames')
      facts.publish('strayFrames', { agentId, hostId })
    },
    closed(link) {
      if (!takenUp.delete(link)) return
      terminals.unlinked(link)
      engine.unlinked(link)
    },
  }
}
