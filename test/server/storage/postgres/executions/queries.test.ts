import { createLocalHints } from '../../../../../src/server/storage/local-hints.ts'
import type { Database } from '../../../../../src/server/storage/postgres/connection/database.ts'
import { shownTasksContract } from '../../../../contracts/shown-tasks.ts'
import { postgresGround } from '../../../../helpers/servers/grounds.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { executingServer } from '../../../../helpers/servers/shared-executions.ts'
import { sharedStore } from '../../../../helpers/servers/shared-store.ts'
import { execution, task } from '../../../../helpers/servers/store-records.ts'

const postgres = sharedPostgres()

shownTasksContract(test, postgresGround(postgres))

test('reading part of a large task reads only the rows of that part, during the task and after it', async (t) => {
  const hostCount = 300
  let mostRows = 0
  const counting = (database: Database): Database => ({
    ...database,
    async ask<R extends object>(...asked: Parameters<Database['ask']>) {
      const rows = await database.ask<R>(...asked)
      mostRows = Math.max(mostRows, rows.length)
      return rows
    },
  })
  const shared = await sharedStore(await postgres, (end) => t.teardown(end))
  const server = await executingServer(shared, 'server', createLocalHints(), counting)
  t.teardown(() => server.close())
  const { executions, results, ownership } = server
  const member = await ownership.join('server')
  await ownership.claim(member, ['t1'])
  const all = Array.from({ length: hostCount }, (_, at) => ({ ...execution('t1', at + 1), position: at }))
  await executions.create(task('t1', { hostCount }), all, async () => null)
  const part = { offset: 100, limit: 5 }
  mostRows = 0
  t.is((await executions.page('t1', part)).length, 5)
  t.is(mostRows, 5)
  await executions.cancel('t1')
  await executions.finish(member, 't1')
  mostRows = 0
  t.is((await results.read('t1', part))?.results.length, 5)
  t.is(mostRows, 5)
})
