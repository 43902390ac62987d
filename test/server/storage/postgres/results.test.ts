import type { ExecutionContext } from 'ava'
import { createLog } from '../../../../src/disk/log.ts'
import { createDatabase } from '../../../../src/server/storage/postgres/connection/database.ts'
import { createPostgresResults } from '../../../../src/server/storage/postgres/results.ts'
import { resultsContract } from '../../../contracts/results.ts'
import { resultOf } from '../../../fixtures/fake-server.ts'
import { patientAddress } from '../../../helpers/servers/patient-address.ts'
import { sharedPostgres, postgresTest as test } from '../../../helpers/servers/postgres.ts'

const postgres = sharedPostgres()

async function databaseFor(t: ExecutionContext) {
  const url = await (await postgres).database()
  const database = createDatabase(patientAddress(url), 'test', createLog('ERROR'))
  t.teardown(() => database.close())
  return database
}

const noOutputs = { forget: async () => undefined }

resultsContract(test, async (t) => {
  const database = await databaseFor(t)
  const results = createPostgresResults(database, noOutputs)
  return { results, reopen: async () => createPostgresResults(database, noOutputs) }
})

test('A04 results moved aside are removed after the retention days, with their output', async (t) => {
  const gone: string[] = []
  const results = createPostgresResults(await databaseFor(t), {
    async forget(taskId) {
      gone.push(taskId)
    },
  })
  const now = Date.now()
  await results.write('t1', { script: '', results: [resultOf('web1')] })
  await results.orphans.moveAside(['t1'], now)
  const age = (days: number) => (time: number) => now - time + days * 24 * 3600_000
  await results.orphans.sweep(30, age(29))
  t.deepEqual(gone, [])
  await results.orphans.sweep(30, age(30))
  t.deepEqual(gone, ['t1'])
  await results.write('t1', { script: 'again', results: [] })
  t.deepEqual(await results.read('t1'), { script: 'again', results: [] })
})
