import { RsmError } from '../../core/errors.ts'
import { closeCodes, stoppedReason } from '../../core/protocol/close-codes.ts'
import { isoTime } from '../../disk/clock.ts'
import type { LinkClaim } from '../storage/ports/cluster.ts'
import type { AgentSocket } from './agent-socket.ts'
import type { WebSocketDependencies } from './dependencies.ts'

export const sharedIdentity = 'Two agents share this identity; remove one, or enroll it again'

/** Logs a store outage once, not once per link. */
export const levelOf = (error: unknown): 'debug' | 'error' =>
  error instanceof RsmError && error.code === 'unavailable' ? 'debug' : 'error'

/** Decides which open link is the one of its host. */
export interface LinkClaims {
  /** Claims the host for a link; the agent's frames wait for its pong. */
  take(link: AgentSocket): Promise<void>
  gone(link: AgentSocket): void
  /** Called every few seconds: ends expired refusals of hosts with two agents. */
  expire(): Promise<void>
}

export function createLinkClaims({
  links,
  member,
  presence,
  facts,
  clock,
  log,
}: WebSocketDependencies): LinkClaims {
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
