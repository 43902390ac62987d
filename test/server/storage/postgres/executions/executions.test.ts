import { executionsContract, type OpenedExecutions } from '../../../../contracts/executions.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { executingServer } from '../../../../helpers/servers/shared-executions.ts'
import { type SharedStore, sharedStore } from '../../../../helpers/servers/shared-store.ts'

const postgres = sharedPostgres()

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

executionsContract(test, async (teardown) => open(await sharedStore(await postgres, teardown), teardown), 8)
