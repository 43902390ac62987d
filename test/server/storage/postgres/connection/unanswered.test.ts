import { once } from 'node:events'
import { createServer } from 'node:net'
import type { ExecutionContext } from 'ava'
import { createLog } from '../../../../../src/disk/log.ts'
import { startServer } from '../../../../../src/server/main.ts'
import { readStoreAddress } from '../../../../../src/server/storage/postgres/connection/address.ts'
import { watchBackend } from '../../../../../src/server/storage/postgres/connection/client.ts'
import {
  createDatabase,
  type Database,
} from '../../../../../src/server/storage/postgres/connection/database.ts'
import { refusePooler } from '../../../../../src/server/storage/postgres/connection/session.ts'
import { cleanEnv, startRsm, temporaryDirectory } from '../../../../fixtures/rsm.ts'
import { type CutLink, startCutLink } from '../../../../helpers/faults/cut-link.ts'
import { startDeafRelay } from '../../../../helpers/faults/deaf-relay.ts'
import { openDatabase } from '../../../../helpers/servers/open-database.ts'
import { sharedPostgres, postgresTest as test } from '../../../../helpers/servers/postgres.ts'
import { until } from '../../../../helpers/until.ts'

const postgres = sharedPostgres()
const one = 'select 1 as one'
const log = createLog('ERROR')

/** Connects through `port`, the port of the relay in front of PostgreSQL. */
async function through(port: number | string, sslmode = 'disable'): Promise<Database> {
  const url = new URL(await (await postgres).database())
  url.port = String(port)
  const address = readStoreAddress(`${url.href}?sslmode=${sslmode}`, undefined)
  return createDatabase({ ...address, connectTimeout: 300 }, 'a', log)
}

const relay = async (t: ExecutionContext): Promise<CutLink> =>
  startCutLink(t, `http://127.0.0.1:${(await postgres).port}`)
const portOf = (link: CutLink) => new URL(link.url).port

test('F23 a PostgreSQL that never closes connections can still be queried and disconnected from', async (t) => {
  const database = await through(await startDeafRelay(t, (await postgres).port))
  t.deepEqual(await database.ask('api', one), [{ one: 1 }])
  // `refusePooler` ends two connections.
  await t.notThrowsAsync(refusePooler(database))
  await database.close()
})

test('F23 a PostgreSQL that accepts but does not answer fails each call, and is queried again once it answers', async (t) => {
  const link = await relay(t)
  const database = await through(portOf(link))
  t.teardown(() => database.close())
  link.freeze()
  for (const call of [() => database.ask('api', one), () => database.connect(), () => database.connect(true)])
    await t.throwsAsync(call, { code: 'unavailable' })
  link.thaw()
  t.deepEqual(await database.ask('api', one), [{ one: 1 }])
  t.is(database.fault, null)
})

test('errors for callers omit the address of an unreachable PostgreSQL; the server itself knows it', async (t) => {
  const link = await relay(t)
  const database = await through(portOf(link))
  t.teardown(() => database.close())
  await database.ask('api', one)
  await link.close()
  for (let call = 0; call < 3; call++)
    await t.throwsAsync(database.ask('api', one), { message: 'the store cannot be reached just now' })
  await t.throwsAsync(database.connect(), { message: 'the store cannot be reached just now' })
  t.is(database.refusal, 'the store cannot be reached just now')
  t.true(database.fault?.includes(portOf(link)), `${database.fault}`)
})

test('a PostgreSQL that begins TLS and then stays silent fails each call', async (t) => {
  const server = createServer((socket) => socket.once('data', () => socket.write('S')))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it listens on a port')
  const database = await through(address.port, 'require')
  await t.throwsAsync(database.ask('api', one), { code: 'unavailable' })
  await t.throwsAsync(database.connect(), { code: 'unavailable' })
  await database.close()
})

test('a statement without a timeout ends when its backend died unnoticed', async (t) => {
  const link = await relay(t)
  const database = await through(portOf(link))
  t.teardown(() => database.close())
  const session = await database.connect()
  const { rows } = await session.query<{ pid: number }>('select pg_backend_pid() as pid')
  const direct = openDatabase(t, await (await postgres).database())
  await watchBackend(session, direct, 20)
  link.freeze({ standing: true })
  const asked = session.query('select pg_sleep(600)')
  await direct.ask('api', 'select pg_terminate_backend($1)', [rows[0]?.pid])
  await t.throwsAsync(asked, { message: 'Connection terminated unexpectedly' })
})

test('a statement without a timeout ends when PostgreSQL is unreachable for three checks', async (t) => {
  const link = await relay(t)
  const database = await through(portOf(link))
  t.teardown(() => database.close())
  const session = await database.connect()
  let looks = 0
  const away: Pick<Database, 'ask' | 'fault'> = {
    fault: 'unreachable',
    ask: async () => {
      looks++
      throw new Error('unreachable')
    },
  }
  await watchBackend(session, away, 5)
  await t.throwsAsync(session.query('select pg_sleep(600)'), {
    message: 'Connection terminated unexpectedly',
  })
  t.is(looks, 3)
})

test('a server whose PostgreSQL accepts but does not answer fails to start, with the reason', async (t) => {
  const link = await relay(t)
  link.freeze()
  const dataDir = temporaryDirectory(t)
  const starting = startServer({
    host: '127.0.0.1',
    port: 0,
    dataDir,
    keysDir: `${dataDir}/keys`,
    store: `postgres://rsm@127.0.0.1:${portOf(link)}/rsm?connect_timeout=1`,
    serverName: 'a',
    heartbeatInterval: 30,
    metricsInterval: 60,
    wsIdleTimeout: 300,
    insecureHttp: false,
    logLevel: 'ERROR',
  })
  await t.throwsAsync(starting, { code: 'unavailable', message: /no host takes writes .*timeout/ })
})

test('SIGTERM ends a server that waits for its PostgreSQL during startup', async (t) => {
  const link = await relay(t)
  link.freeze()
  const home = temporaryDirectory(t)
  const store = `postgres://rsm@127.0.0.1:${portOf(link)}/rsm?connect_timeout=999`
  const place = [
    '--store',
    store,
    '--server-name',
    'a',
    '--keys',
    `${home}/keys`,
    '--data-dir',
    `${home}/data`,
  ]
  const { child, done } = startRsm(['server', 'start', '--port', '0', ...place], cleanEnv(home))
  t.teardown(() => child.kill('SIGKILL'))
  await until('it asks PostgreSQL', () => link.count > 0)
  child.kill('SIGTERM')
  const { exit, stderr } = await done
  t.is(exit, 0, stderr)
})
