import { openChannel } from '../../../src/server/storage/postgres/hints/channel.ts'
import { createHints } from '../../../src/server/storage/postgres/hints/hints.ts'
import { openOwnership } from '../../../src/server/storage/postgres/ownership/ownership.ts'
import { openPresence } from '../../../src/server/storage/postgres/presence/presence.ts'
import { presenceContract } from '../../contracts/presence.ts'
import { type SharedPostgres, sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { sharedStore } from '../../helpers/servers/shared-store.ts'

let postgres: Promise<SharedPostgres> | undefined

presenceContract(test, async (t, options) => {
  postgres ??= sharedPostgres()
  const store = await sharedStore(await postgres, (end) => t.teardown(end))
  const server = await store.server('a')
  const channel = await openChannel(server)
  const hints = createHints(channel, server.log)
  const ownership = await openOwnership({ ...server, hints, version: '0.1.0' })
  t.teardown(async () => {
    hints.close()
    await ownership.close()
    await channel.close()
  })
  const { neighbours } = ownership
  const again = async () => {
    const presence = await openPresence({
      ...server,
      channel,
      hints,
      neighbours,
      version: '0.1.0',
      ...options,
    })
    t.teardown(() => presence.close())
    return presence
  }
  return { presence: await again(), hints, again }
})
