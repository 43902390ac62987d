import { executionsContract, type OpenedExecutions } from '../../../contracts/executions.ts'
import { atExit, startPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'
import { executingServer } from '../../../helpers/servers/shared-executions.ts'
import { type SharedStore, sharedStore } from '../../../helpers/servers/shared-store.ts'

/** All tests of the file have their servers at once. */
const postgres = startPostgres(atExit, { max_connections: '400' })

async function open(
  shared: SharedStore,
  teardown: (end: () => Promise<void>) => void,
): Promise<OpenedExecutions> {
  const server = await executingServer(shared, 'server')
  teardown(() => server.close())
  const { executions, store, results, links, ownership } = server
  const reopen = async () => {
    await server.close()
    return open(shared, teardown)
  }
  return { executions, store, results, links, ownership, reopen }
}

executionsContract(test, async (teardown) => open(await sharedStore(await postgres, teardown), teardown))
