import { createLocalHints } from '../../../../src/server/storage/local-hints.ts'
import { createLinks } from '../../../../src/server/storage/postgres/links.ts'
import { openOwnership } from '../../../../src/server/storage/postgres/ownership/ownership.ts'
import { linksContract } from '../../../contracts/links.ts'
import {
  type SharedPostgres,
  sharedPostgres,
  postgresTest as test,
} from '../../../helpers/servers/postgres.ts'
import { sharedStore } from '../../../helpers/servers/shared-store.ts'

let postgres: Promise<SharedPostgres> | undefined
const ends: (() => Promise<void> | void)[] = []
test.after.always(async () => {
  for (const end of ends.toReversed()) await end()
})

linksContract(test, async () => {
  postgres ??= sharedPostgres()
  const store = await sharedStore(await postgres, (end) => ends.push(end))
  const server = await store.server('a')
  const hints = createLocalHints()
  const ownership = await openOwnership({ ...server, hints, version: '0.1.0' })
  const links = createLinks({ ...server, hints, ownership })
  ends.push(
    () => ownership.close(),
    () => links.close(),
  )
  return { links, ownership, forward: (time: number) => store.forward(time) }
})
