import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { RsmError } from '../../core/errors.ts'
import { maxFrameBytes } from '../../core/protocol/bounds.ts'
import { closeCodes, stoppedReason } from '../../core/protocol/close-codes.ts'
import { subprotocol } from '../../core/protocol/wire-text.ts'
import { isoTime, repeat } from '../../disk/clock.ts'
import { refuseUpgrade } from '../http/answers.ts'
import type { Caller } from '../storage/ports/caller.ts'
import type { LinkClaim } from '../storage/ports/cluster.ts'
import { createAgentFrames } from './agent-frames.ts'
import { AgentSocket, type SocketEvents } from './agent-socket.ts'
import type { WebSocketDependencies } from './dependencies.ts'
import { createLinkBounds } from './link-bounds.ts'

export interface AgentListener {
  admit(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Open links, and bytes of frames received but not yet processed. */
  load(): { open: number; backlogBytes: number }
  tick(): void
  /** Closes this share of the links, 0 to 1, so that their agents connect to another server. */
  shed(share: number): void
  close(): void
}

const agentPath = /^\/ws\/agent\/([^/?]{1,256})(?:\?.*)?$/

export function createAgentListener(
  deps: WebSocketDependencies,
  callerOf: (request: IncomingMessage) => Promise<Caller | undefined>,
): AgentListener {
  const { log, clock } = deps
  const open = new Set<AgentSocket>()
  const claims = createLinkClaims(deps)
  const admission = createAdmission()
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: maxFrameBytes,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
  })

  const frames = createAgentFrames(deps)
  const events: SocketEvents = {
    ...frames,
    closed(link) {
      open.delete(link)
      frames.closed(link)
      claims.gone(link)
    },
  }

  const parts = {
    clock,
    log,
    events,
    bounds: createLinkBounds(),
    holdsLease: () => deps.holdsLease(),
  }

  function accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    identity: { hostId: number; agentId: string },
  ) {
    sockets.handleUpgrade(request, socket, head, (ws) => {
      const ofOurs = ws.protocol === subprotocol
      const link = new AgentSocket(ws, { ...identity, ofOurs }, parts)
      open.add(link)
      const { hostId, agentId } = identity
      log.info({ hostId, agentId, protocol: ofOurs ? subprotocol : 'base' }, 'agent linked')
      claims.take(link).catch((error: unknown) => {
        log[levelOf(error)]({ err: error }, 'a link could not be claimed')
        link.close(closeCodes.overloaded, 'the server cannot take this just now')
      })
    })
  }

  function authorize(
    request: IncomingMessage,
    caller: Caller | undefined,
  ): { hostId: number; agentId: string } {
    if (!deps.accepting()) throw new RsmError('unavailable', 'The server is shutting down', { retryAfter: 5 })
    deps.clients.check(request)
    if (!caller) throw new RsmError('unauthenticated', 'This requires an agent token')
    const named = agentPath.exec(request.url ?? '')?.[1]
    if (named === undefined) throw new RsmError('not_found', 'No such path')
    if (caller.type !== 'agent' || caller.agentId !== decodeComponent(named))
      throw new RsmError('forbidden', 'An agent token can open only the link of its own agent')
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

  const endRevoking = closeRevoked(deps, open)

  return {
    admit(request, socket, head) {
      admission.queue(() => {
        if (!socket.destroyed) void admit(request, socket, head)
      })
    },
    load() {
      let backlogBytes = 0
      for (const link of open) backlogBytes += link.backlogBytes
      return { open: open.size, backlogBytes }
    },
    tick() {
      for (const link of open) link.tick(deps.wsIdleTimeout * 1000)
      claims
        .expire()
        .catch((error: unknown) =>
          log[levelOf(error)]({ err: error }, 'refusals of links could not be ended'),
        )
    },
    shed(share) {
      for (const link of [...open].slice(0, Math.ceil(open.size * share)))
        link.close(closeCodes.overloaded, 'the server cannot reach its store')
    },
    close() {
      endRevoking()
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

/** Links admitted per turn of the event loop, which takes some milliseconds. */
const linksPerBatch = 16

/** Admits links in batches, so that requests are answered while a whole fleet reconnects. */
interface Admission {
  /** Calls `admit` in order of arrival. */
  queue(admit: () => void): void
}

export function createAdmission(): Admission {
  /** Bounded by the limit of open sockets, because each entry holds one. */
  let waiting: (() => void)[] = []
  let next = 0
  function admitNext(): void {
    for (const admit of waiting.slice(next, next + linksPerBatch)) admit()
    next += linksPerBatch
    if (next < waiting.length) {
      setImmediate(admitNext)
      return
    }
    waiting = []
    next = 0
  }
  return {
    queue(admit) {
      waiting.push(admit)
      if (waiting.length === 1) setImmediate(admitNext)
    },
  }
}

/** Poll interval in milliseconds, in case a hint is lost. */
const lostHint = 1000

/** Closes links of revoked agents and deleted hosts. Returns a function that stops it. */
function closeRevoked(
  { store, hints, log }: Pick<WebSocketDependencies, 'store' | 'hints' | 'log'>,
  open: ReadonlySet<AgentSocket>,
): () => void {
  const end = (link: AgentSocket) => link.close(closeCodes.revoked, 'the token was revoked')

  async function closeLost(): Promise<void> {
    if (open.size === 0) return
    const links = [...open]
    const hostIds = links.map(({ hostId }) => hostId)
    const hosts = await store.getMany('hosts', hostIds)
    for (const [at, link] of links.entries()) {
      const agent = hosts[at]?.agent
      if (agent?.agentId !== link.agentId || agent.tokenHash === null) end(link)
    }
  }

  const polling = repeat(lostHint, closeLost, (error) =>
    log.error({ err: error }, 'could not look for links of revoked agents'),
  )
  const unsubscribe = hints.subscribe('agentRevoked', null, ({ id }) => {
    for (const link of open) if (link.agentId === id) end(link)
  })
  return () => {
    void polling.stop()
    unsubscribe()
  }
}

const sharedIdentity = 'Two agents share this identity; remove one, or enroll it again'

/** Logs a store outage once, not once per link. */
const levelOf = (error: unknown): 'debug' | 'error' =>
  error instanceof RsmError && error.code === 'unavailable' ? 'debug' : 'error'

/** Decides which open link is the one of its host. */
interface LinkClaims {
  /** Claims the host for a link; the agent's frames wait for its pong. */
  take(link: AgentSocket): Promise<void>
  gone(link: AgentSocket): void
  /** Called every few seconds: ends expired refusals of hosts with two agents. */
  expire(): Promise<void>
}

function createLinkClaims({ links, member, presence, facts, clock, log }: WebSocketDependencies): LinkClaims {
  const claims = new Map<AgentSocket, LinkClaim>()

  function noteDuplicate(hostId: number, duplicate: boolean): void {
    if (duplicate) log.warn({ hostId }, 'two agents share one identity; refusing new links for 5 minutes')
    presence.duplicate(hostId, duplicate)
    facts.publish('duplicateAgent', { hostId, duplicate })
  }

  function release(claim: LinkClaim): void {
    links
      .release(claim)
      .catch((error: unknown) => log[levelOf(error)]({ err: error }, 'a link could not be released'))
  }

  return {
    async take(link) {
      const { hostId, agentId } = link
      const claimed = await links.claim(hostId, { server: member, agentId }, () => {
        claims.delete(link)
        link.close(closeCodes.replaced, 'replaced by a newer link')
      })
      if (!claimed) return link.close(closeCodes.replaced, sharedIdentity)
      const { claim, isDuplicate } = claimed
      if (isDuplicate) noteDuplicate(hostId, true)
      if (!link.isOpen) return release(claim)
      claims.set(link, claim)
      presence.connected(hostId, false, undefined, claim)
      link.prove(claim)
    },
    gone(link) {
      const claim = claims.get(link)
      if (!claim) return
      claims.delete(link)
      const why = link.isStopped ? `${stoppedReason} at ${isoTime(clock.now())}` : undefined
      presence.connected(link.hostId, false, why, claim)
      release(claim)
    },
    async expire() {
      for (const hostId of await links.expire()) noteDuplicate(hostId, false)
    },
  }
}
