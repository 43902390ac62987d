import type { ExecutionContext } from 'ava'
import { systemClock } from '../../../src/disk/clock.ts'
import { createRecordings } from '../../../src/server/storage/postgres/recordings/recordings.ts'
import type { PostgresRelay } from '../../../src/server/storage/postgres/relay/relay.ts'
import { openSites, type SiteServer } from '../terminals/sites.ts'
import { openDatabase } from './open-database.ts'
import { sharedPostgres } from './postgres.ts'
import { openRelay } from './relays.ts'

/** Servers whose terminals reach each other, and are recorded, over PostgreSQL. `relays` and `clocks` by the server's name. */
export async function openSharedSites(t: ExecutionContext) {
  const url = await (await sharedPostgres()).database()
  const recordings = createRecordings(openDatabase(t, url, 'recordings'))
  const relays = new Map<string, PostgresRelay>()
  const clocks = new Map<string, { ahead: number }>()
  const sites = await openSites(t, async (name) => {
    const { relay } = openRelay(t, url, name)
    const state = { ahead: 0 }
    relays.set(name, relay)
    clocks.set(name, state)
    const clock = { now: () => systemClock.now(), monotonic: () => systemClock.monotonic() + state.ahead }
    return { relay, recordings, clock }
  })
  /** As others see it when its process is stopped, or cut off, for longer than its lease. */
  async function lose({ member }: SiteServer): Promise<void> {
    await relays.get(member.name)?.close()
    await sites.data.ownership.leave(member)
  }
  async function start(name: string): Promise<SiteServer> {
    const server = await sites.start(name)
    await relays.get(name)?.settled()
    return server
  }
  return { ...sites, start, clocks, lose }
}
