import { closeCodes } from '../../core/protocol/close-codes.ts'
import { repeat } from '../../disk/repeat.ts'
import type { AgentSocket } from './agent-socket.ts'
import type { WebSocketDependencies } from './dependencies.ts'

/** Milliseconds until a hint that was lost is made up for. */
const lostHint = 1000

/** Closes links of agents whose token was revoked or whose host is gone. Answers the way to end that. */
export function closeRevoked(
  { store, hints, log }: Pick<WebSocketDependencies, 'store' | 'hints' | 'log'>,
  open: ReadonlySet<AgentSocket>,
): () => void {
  const end = (link: AgentSocket) => link.close(closeCodes.revoked, 'the token was revoked')

  async function look(): Promise<void> {
    if (open.size === 0) return
    const links = [...open]
    const hostIds = links.map(({ hostId }) => hostId)
    const hosts = await store.getMany('hosts', hostIds)
    for (const [at, link] of links.entries()) {
      const agent = hosts[at]?.agent
      if (agent?.agentId !== link.agentId || agent.tokenHash === null) end(link)
    }
  }

  const looking = repeat(lostHint, look, (error) =>
    log.error({ err: error }, 'links of revoked agents could not be looked for'),
  )
  const unsubscribe = hints.subscribe('agentRevoked', null, ({ id }) => {
    for (const link of open) if (link.agentId === id) end(link)
  })
  return () => {
    void looking.stop()
    unsubscribe()
  }
}
