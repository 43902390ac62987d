import { join } from 'node:path'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { until } from '../../helpers/until.ts'

test('an audit entry that PostgreSQL refused is written later, with the time of the change', async (t) => {
  const store = await (await sharedPostgres()).database()
  const options = { store, serverName: 'a', keysDir: join(temporaryDirectory(t), 'keys') }
  const server = await startServerProcess(t, { options })
  const database = openDatabase(t, store, 'test')
  const entries = async () => (await server.data('GET', '/api/audit?action=host.create')).content
  await database.ask('api', 'alter function rsm.audit_append rename to audit_append_away')
  const before = new Date().toISOString()
  const { status, body } = await server.api('POST', '/api/hosts', { hostname: 'web1', ip: '192.0.2.1' })
  const after = new Date().toISOString()
  t.is(status, 503)
  t.is(body.message, 'POST /api/hosts was carried out, but its entry in the audit log could not be written')
  t.deepEqual(await entries(), [])
  await database.ask('api', 'alter function rsm.audit_append_away rename to audit_append')
  await until('the entry is written', async () => (await entries()).length > 0)
  const [entry] = await entries()
  t.like(entry, {
    actor: { name: 'admin' },
    object: { name: 'web1' },
    outcome: 'SUCCESS',
    detail: { late: true },
  })
  t.true(entry.at >= before && entry.at <= after, entry.at)
})
