import type { ExecutionContext } from 'ava'
import { openChannel } from '../../../src/server/storage/postgres/hints/channel.ts'
import { createHints } from '../../../src/server/storage/postgres/hints/hints.ts'
import { startCutLink } from '../faults/cut-link.ts'
import type { SharedPostgres } from './postgres.ts'
import { sharedStore } from './shared-store.ts'

/** A store, and servers that exchange hints over a network that a test can cut. */
export async function hintingServers(t: ExecutionContext, postgres: Promise<SharedPostgres>) {
  const store = await sharedStore(await postgres, (end) => t.teardown(end))
  async function server(name: string) {
    const network = await startCutLink(t, store.url.replace('postgres:', 'http:'))
    const parts = await store.server(name, network.url)
    const channel = await openChannel(parts)
    const hints = createHints(channel, parts.log)
    t.teardown(() => {
      hints.close()
      return channel.close()
    })
    return { network, channel, hints }
  }
  return { store, server }
}
