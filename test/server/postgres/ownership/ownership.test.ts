import { createLocalHints } from '../../../../src/server/local-hints.ts'
import { openOwnership } from '../../../../src/server/postgres/ownership/ownership.ts'
import { ownershipContract } from '../../../contracts/ownership.ts'
import {
  type SharedPostgres,
  sharedPostgres,
  postgresTest as test,
} from '../../../helpers/servers/postgres.ts'
import { sharedStore } from '../../../helpers/servers/shared-store.ts'

let postgres: Promise<SharedPostgres> | undefined
const ends: (() => Promise<void>)[] = []
test.after.always(async () => {
  for (const end of ends.toReversed()) await end()
})

ownershipContract(test, async () => {
  postgres ??= sharedPostgres()
  const store = await sharedStore(await postgres, (end) => ends.push(end))
  const server = await store.server('a')
  const ownership = await openOwnership({ ...server, hints: createLocalHints(), version: '0.1.0' })
  ends.push(() => ownership.close())
  return { ownership, forward: (time: number) => store.forward(time) }
})
