import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import { lease } from '../../../../../src/server/storage/ports/cluster.ts'
import { openOwnership } from '../../../../../src/server/storage/postgres/ownership/ownership.ts'
import { ownershipContract } from '../../../../contracts/ownership.ts'
import {
  type SharedPostgres,
  sharedPostgres,
  postgresTest as test,
} from '../../../../helpers/servers/postgres.ts'
import { sharedStore } from '../../../../helpers/servers/shared-store.ts'
import { until } from '../../../../helpers/until.ts'

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

test('a lease is renewed without a call once the connection is restored', async (t) => {
  const store = await sharedStore(await sharedPostgres(), (end) => t.teardown(end))
  const server = await store.server('a')
  const ownership = await openOwnership({ ...server, hints: createLocalHints(), version: '0.1.0' })
  t.teardown(() => ownership.close())
  const member = await ownership.join('a')
  await store.forward(lease)
  t.false(ownership.holdsLease(member))
  await store.ask(
    'api',
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database())`,
  )
  await until('the lease holds', () => ownership.holdsLease(member))
  t.true((ownership.renewedAt(member) ?? 0) > server.clock.monotonic() - lease)
})
