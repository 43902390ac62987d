import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { RsmError } from '../../core/errors.ts'
import { LineBudget } from '../../core/line-budget.ts'
import { maxFrameBytes, pingInterval } from '../../core/protocol/bounds.ts'
import { closeCodes, stoppedReason } from '../../core/protocol/close-codes.ts'
import { subprotocol } from '../../core/protocol/envelope.ts'
import { type Payloads, type ScriptComplete } from '../../core/protocol/messages.ts'
import { isDistrust } from '../../core/signing.ts'
import { limitNames } from '../../core/task/limits.ts'
import { printable } from '../../core/text/printable.ts'
import type { Caller } from '../access/caller.ts'
import type { Credentials } from '../access/credentials.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { Engine } from '../engine/engine.ts'
import { bearer } from '../http/auth.ts'
import type { Clients } from '../http/client-address.ts'
import { asksForWebSocket, declineUpgrade } from '../http/declined-upgrade.ts'
import type { LocalFacts } from '../local-facts.ts'
import type { Log } from '../log.ts'
import type { Hints } from '../seams/hints.ts'
import type { LinkClaim, Links } from '../seams/links.ts'
import type { Member } from '../seams/ownership.ts'
import type { Heard } from '../seams/presence.ts'
import type { Store } from '../seams/store.ts'
import type { Terminals } from '../terminals/sessions.ts'
import type { Tickets } from '../terminals/tickets.ts'
import { createAdmission } from './admission.ts'
import { AgentSocket, type SocketEvents } from './agent-socket.ts'
import { createBacklog } from './backlog.ts'
import { refuseUpgrade } from './refused-upgrade.ts'
import { createTerminalDoor, isTerminalPath } from './terminal-door.ts'
import type { TerminalSocket } from './terminal-socket.ts'

export interface HubDependencies {
  /** The server whose sockets these are. */
  member: Member
  links: Links
  credentials: Credentials
  engine: Pick<Engine, 'linked' | 'unlinked' | 'received' | 'output' | 'complete'>
  terminals: Terminals
  tickets: Tickets
  clients: Clients
  store: Store
  presence: Heard
  hints: Hints
  facts: LocalFacts
  clock: Clock
  log: Log
  /** Seconds without a data frame or an agent's ping after which a link is closed (contract §6). */
  wsIdleTimeout: number
  accepting(): boolean
  /** Hears of every upgrade that is refused, before the answer leaves; `caller` is who it was, where that is known. */
  refused(request: IncomingMessage, caller: Caller | undefined, error: unknown): Promise<void>
  /** Hears of a client's frame that nobody of good will sends. */
  frameRefused(socket: TerminalSocket, message: string): void
}

/** Owns every WebSocket of the server. */
export interface Hub {
  attach(server: Server): void
  /** Links that are open, and bytes of their frames that are read and not dealt with. */
  load(): { open: number; backlogBytes: number }
  /** Closes all links with 1001. */
  close(): void
}

const sharedIdentity = 'Two agents share this identity; remove one, or enrol it again'
const agentPath = /^\/ws\/agent\/([^/?]{1,256})(?:\?.*)?$/

export function createHub(deps: HubDependencies): Hub {
  const { engine, terminals, presence, log, clock } = deps
  const open = new Set<AgentSocket>()
  /** Of those links that hold their host. */
  const claims = new Map<AgentSocket, LinkClaim>()
  const backlog = createBacklog()
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: maxFrameBytes,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  })

  function noteDistrust({ agentId, hostId }: AgentSocket, { taskId, exitCode, error }: ScriptComplete): void {
    if (exitCode === 126 && error && isDistrust(error))
      deps.facts.publish('distrusted', { agentId, hostId, taskId, message: printable(error) })
  }

  async function takeUp(link: AgentSocket): Promise<void> {
    terminals.linked(link)
    await engine.linked(link)
  }

  function letGo(link: AgentSocket): void {
    terminals.unlinked(link)
    engine.unlinked(link)
  }

  const reported = new LineBudget()
  function noteReported({ agentId, hostId }: AgentSocket, error: Payloads['ERROR']): void {
    const { message } = error
    if (isDistrust(message))
      deps.facts.publish('distrusted', { agentId, hostId, taskId: null, message: printable(message) })
    const leftOut = reported.take(agentId, clock.monotonic())
    if (leftOut !== null) log.warn({ agentId, error, leftOut }, 'an agent reports an error')
  }

  const events: SocketEvents = {
    proven(link) {
      // One of ours can't be sent anything before its HELLO.
      if (link.ofOurs) return
      presence.greeted(link.hostId, null)
      presence.connected(link.hostId, true)
      takeUp(link).catch((error: unknown) => log.error({ err: error }, 'a link could not be taken up'))
    },
    hello(link, { agentVersion, capabilities }) {
      const { runAs = null, runsAsRoot = null, sandbox = null, containment, terminal, limits } = capabilities
      presence.greeted(link.hostId, {
        runAs: runAs === null ? null : printable(runAs),
        runsAsRoot,
        sandbox,
        containment,
        agentVersion: printable(agentVersion),
        terminal,
        ...(limits ? { enforces: limitNames.filter((name) => limits.includes(name)) } : {}),
      })
      presence.connected(link.hostId, true)
      return takeUp(link)
    },
    async message(link, message, json) {
      switch (message.type) {
        case 'SCRIPT_RECEIVED':
          return engine.received(link, message.id, message.payload)
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
    closed(link) {
      open.delete(link)
      letGo(link)
      const claim = claims.get(link)
      if (!claim) return
      claims.delete(link)
      const why = link.isStopped ? `${stoppedReason} at ${isoTime(clock.now())}` : undefined
      presence.connected(link.hostId, false, why)
      release(claim)
    },
  }

  function noteDuplicate(hostId: number, duplicate: boolean): void {
    if (duplicate) log.warn({ hostId }, 'two agents share one identity; refusing new links for 5 minutes')
    presence.duplicate(hostId, duplicate)
    deps.facts.publish('duplicateAgent', { hostId, duplicate })
  }

  async function expireRefusals(): Promise<void> {
    for (const hostId of await deps.links.expire()) noteDuplicate(hostId, false)
  }

  function release(claim: LinkClaim): void {
    deps.links
      .release(claim)
      .catch((error: unknown) => log.error({ err: error }, 'a link could not be released'))
  }

  /** Makes a link the one of its host; the agent's frames wait until it has answered a ping. */
  async function hold(link: AgentSocket): Promise<void> {
    const { hostId, agentId } = link
    const claimed = await deps.links.claim(hostId, { server: deps.member, agentId }, () => {
      claims.delete(link)
      link.close(closeCodes.replaced, 'replaced by a newer link')
    })
    if (!claimed) return link.close(closeCodes.replaced, sharedIdentity)
    const { claim, isDuplicate } = claimed
    if (isDuplicate) noteDuplicate(hostId, true)
    if (!link.isOpen) return release(claim)
    claims.set(link, claim)
    presence.connected(hostId, false)
    link.prove(claim)
  }

  function accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    identity: { hostId: number; agentId: string },
  ) {
    sockets.handleUpgrade(request, socket, head, (ws) => {
      const ofOurs = ws.protocol === subprotocol
      const link = new AgentSocket(ws, { ...identity, ofOurs }, { clock, log, events, backlog })
      open.add(link)
      log.info({ agentId: identity.agentId, hostId: identity.hostId, ofOurs }, 'agent linked')
      hold(link).catch((error: unknown) => {
        log.error({ err: error }, 'a link could not be claimed')
        link.close(closeCodes.overloaded, 'the server can not take this just now')
      })
    })
  }

  const callerOf = async (request: IncomingMessage): Promise<Caller | undefined> => {
    const token = bearer(request.headers.authorization)
    return token === undefined ? undefined : deps.credentials(token)
  }

  function authorize(
    request: IncomingMessage,
    caller: Caller | undefined,
  ): { hostId: number; agentId: string } {
    if (!deps.accepting()) throw new RsmError('unavailable', 'The server is shutting down', { retryAfter: 5 })
    deps.clients.check(request)
    if (!caller) throw new RsmError('unauthenticated', 'This needs an agent token')
    const named = agentPath.exec(request.url ?? '')?.[1]
    if (named === undefined) throw new RsmError('not_found', 'No such path')
    if (caller.type !== 'agent' || caller.agentId !== decodeComponent(named))
      throw new RsmError('forbidden', 'An agent token opens the link of its own agent only')
    if (deps.links.refuses(caller.hostId)) throw new RsmError('conflict', sharedIdentity, { retryAfter: 300 })
    return caller
  }

  async function admit(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    let caller: Caller | undefined
    try {
      caller = deps.accepting() ? await callerOf(request) : undefined
      accept(request, socket, head, authorize(request, caller))
    } catch (error) {
      await deps.refused(request, caller, error).catch(() => undefined)
      refuseUpgrade(socket, error)
    }
  }

  const admission = createAdmission()
  const door = createTerminalDoor({ ...deps, callerOf })

  const ticking = setInterval(
    () => {
      const idle = deps.wsIdleTimeout * 1000
      for (const link of open) link.tick(idle)
      expireRefusals().catch((error: unknown) => log.error({ err: error }, 'refusals of links did not end'))
      door.tick()
    },
    Math.min(pingInterval, Math.max(250, (deps.wsIdleTimeout * 1000) / 4)),
  )
  ticking.unref()

  const unsubscribe = deps.hints.subscribe('agentRevoked', null, ({ id }) => {
    for (const link of open) if (link.agentId === id) link.close(closeCodes.revoked, 'the token was revoked')
  })

  return {
    attach(server) {
      server.on('upgrade', (request, socket: Duplex, head: Buffer) => {
        if (!asksForWebSocket(request)) return declineUpgrade(server, request, socket, head)
        socket.on('error', () => socket.destroy())
        if (isTerminalPath(request.url)) void door.admit(request, socket, head)
        else
          admission.queue(() => {
            if (!socket.destroyed) void admit(request, socket, head)
          })
      })
    },
    load() {
      let backlogBytes = 0
      for (const link of open) backlogBytes += link.backlogBytes
      return { open: open.size, backlogBytes }
    },
    close() {
      clearInterval(ticking)
      unsubscribe()
      // Before the links: no client need hear that its host is away.
      door.close()
      for (const link of open) link.close(closeCodes.shuttingDown, 'the server is shutting down')
      sockets.close()
    },
  }
}

function decodeComponent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
