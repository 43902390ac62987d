import { webhookQueueContract } from '../../../contracts/webhook-queue.ts'
import { openStore } from '../../../helpers/servers/open-store.ts'
import { atExit, startPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'

const postgres = startPostgres(atExit)

webhookQueueContract(test, 'on PostgreSQL,', async (t) => {
  const { store } = await openStore(t, await (await postgres).database())
  return store
})
