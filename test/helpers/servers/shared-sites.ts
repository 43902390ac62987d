import type { ExecutionContext } from 'ava'
import { systemClock } from '../../../src/disk/clock.ts'
import { createRecordings } from '../../../src/server/storage/postgres/recordings.ts'
import type { ServerRelay } from '../../../src/server/terminals/relay/relay.ts'
import { openSites, type SiteServer } from '../terminals/sites.ts'
import { openDatabase } from './open-database.ts'
import { sharedPostgres } from './postgres.ts'
import { listeningRelay, memoryPeers } from './relays.ts'

/** Servers whose terminals reach each other by WebSocket, with recordings in PostgreSQL. `clocks`: by the server's name. */
export async function openSharedSites(t: ExecutionContext) {
  const url = await (await sharedPostgres()).database()
  const recordings = createRecordings(openDatabase(t, url, 'recordings'))
  const relays = new Map<string, ServerRelay>()
  const clocks = new Map<string, { ahead: number }>()
  const peers = memoryPeers()
  const sites = await openSites(t, async (member) => {
    const { relay } = await listeningRelay(t, member, peers.of(member))
    const state = { ahead: 0 }
    relays.set(member.name, relay)
    clocks.set(member.name, state)
    const clock = { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + state.ahead }
    return { relay, recordings, clock }
  })
  /** Makes a server look suspended or cut off for longer than its lease. */
  async function lose({ member }: SiteServer): Promise<void> {
    peers.lose(member)
    relays.get(member.name)?.close()
    await sites.data.ownership.leave(member)
  }
  return { ...sites, clocks, lose }
}
