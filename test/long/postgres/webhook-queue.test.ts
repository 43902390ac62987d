import { webhookQueueContract } from '../../contracts/webhook-queue.ts'
import { openStore } from '../../helpers/servers/open-store.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()

webhookQueueContract(test, 'on PostgreSQL,', async (t) => {
  const { store } = await openStore(t, await (await postgres).database())
  return store
})
