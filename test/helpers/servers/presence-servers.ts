import type { ExecutionContext } from 'ava'
import { renewEvery } from '../../../src/server/storage/ports/cluster.ts'
import type { PresenceView } from '../../../src/server/storage/ports/presence.ts'
import type { Database } from '../../../src/server/storage/postgres/connection/database.ts'
import { type Channel, openChannel } from '../../../src/server/storage/postgres/hints/channel.ts'
import { createHints } from '../../../src/server/storage/postgres/hints/hints.ts'
import { createLinks } from '../../../src/server/storage/postgres/links.ts'
import { openOwnership } from '../../../src/server/storage/postgres/ownership/ownership.ts'
import { openPresence } from '../../../src/server/storage/postgres/presence/presence.ts'
import { startCutLink } from '../faults/cut-link.ts'
import { until } from '../until.ts'
import type { SharedStore } from './shared-store.ts'

/** Drops these kinds of lines from other servers. */
const losing = (channel: Channel, isLost: (kind: string) => boolean): Channel => ({
  ...channel,
  hear: (kind, listener) => channel.hear(kind, isLost(kind) ? () => undefined : listener),
})

/** Waits for `asking` before each named statement. */
const waiting = (database: Database, asking: (name: string) => Promise<void>): Database => ({
  ...database,
  get fault() {
    return database.fault
  },
  async ask(pool, statement, values) {
    if (typeof statement !== 'string') await asking(statement.name)
    return database.ask(pool, statement, values)
  },
})

export type PresenceServer = Awaited<ReturnType<typeof presenceServer>>

/** A server of a shared store, reduced to hosts and their links. */
export async function presenceServer(
  t: ExecutionContext,
  store: SharedStore,
  name: string,
  {
    heartbeatInterval = 30,
    isLost = (_kind: string): boolean => false,
    asking = async (_name: string): Promise<void> => undefined,
  } = {},
) {
  const network = await startCutLink(t, store.url.replace('postgres:', 'http:'))
  const parts = await store.server(name, network.url)
  const channel = await openChannel(parts)
  const hints = createHints(channel, parts.log)
  const ownership = await openOwnership({ ...parts, hints, version: '0.1.0' })
  const { neighbours } = ownership
  const presence = await openPresence({
    ...parts,
    database: waiting(parts.database, asking),
    channel: losing(channel, isLost),
    hints,
    neighbours,
    version: '0.1.0',
    heartbeatInterval,
  })
  const links = createLinks({ ...parts, hints, ownership })
  const view = async (hostId: number) => (await presence.views([hostId]))[0] as PresenceView
  const member = await ownership.join(name)
  const renewing = setInterval(() => void ownership.renew(member).catch(() => undefined), renewEvery)
  let ending: Promise<void> | undefined
  /** In the order of a stop by SIGTERM. */
  const stop = () => {
    ending ??= (async () => {
      clearInterval(renewing)
      links.close()
      await presence.close()
      await ownership.leave(member)
      hints.close()
      await ownership.close()
      await channel.close()
    })()
    return ending
  }
  t.teardown(stop)
  return {
    network,
    presence,
    hints,
    channel,
    ownership,
    member,
    links,
    view,
    stop,
    /** Links the agent of a host, as over a socket. */
    async link(hostId: number) {
      const claimed = await links.claim(hostId, { server: member, agentId: 'agent' }, () => undefined)
      if (!claimed) throw new Error('the claim is refused')
      await links.ready(claimed.claim)
      presence.connected(hostId, true, undefined, claimed.claim)
      return claimed.claim
    },
    /** Stops renewing its lease. */
    lapse: () => clearInterval(renewing),
    kill() {
      clearInterval(renewing)
      return network.close()
    },
  }
}

/** Waits until a server shows these values of a host. */
export const shows = (server: PresenceServer, hostId: number, expected: Partial<PresenceView>) =>
  until(`${JSON.stringify(expected)} is shown`, async () => {
    const view = await server.view(hostId)
    return Object.entries(expected).every(([name, value]) => view[name as keyof PresenceView] === value)
  })
