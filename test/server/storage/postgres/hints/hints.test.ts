import { openChannel } from '../../../../../src/server/storage/postgres/hints/channel.ts'
import { createHints } from '../../../../../src/server/storage/postgres/hints/hints.ts'
import { hintsContract } from '../../../../contracts/hints.ts'
import {
  type SharedPostgres,
  sharedPostgres,
  postgresTest as test,
} from '../../../../helpers/servers/postgres.ts'
import { sharedStore } from '../../../../helpers/servers/shared-store.ts'

let postgres: Promise<SharedPostgres> | undefined
const ends: (() => Promise<void> | void)[] = []
test.after.always(async () => {
  for (const end of ends.toReversed()) await end()
})

hintsContract(test, async () => {
  postgres ??= sharedPostgres()
  const store = await sharedStore(await postgres, (end) => ends.push(end))
  const server = await store.server('a')
  const channel = await openChannel(server)
  const hints = createHints(channel, server.log)
  ends.push(
    () => channel.close(),
    () => hints.close(),
  )
  return hints
})
