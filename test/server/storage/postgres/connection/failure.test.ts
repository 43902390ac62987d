import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import pg from 'pg'
import { createLog } from '../../../../../src/disk/log.ts'
import { Client, clientOptions } from '../../../../../src/server/storage/postgres/connection/client.ts'
import { createDatabase } from '../../../../../src/server/storage/postgres/connection/database.ts'
import {
  isAway,
  isOfStatement,
  isToBeRepeated,
} from '../../../../../src/server/storage/postgres/connection/failure.ts'
import { startCutLink } from '../../../../helpers/faults/cut-link.ts'
import { openDatabase } from '../../../../helpers/servers/open-database.ts'
import { patientAddress } from '../../../../helpers/servers/patient-address.ts'
import {
  atExit,
  sharedPostgres,
  startPostgres,
  postgresTest as test,
} from '../../../../helpers/servers/postgres.ts'

/**
 * All messages and codes here come from PostgreSQL, the kernel or `pg`, so that updates that change one are noticed.
 */
const postgres = sharedPostgres()
const url = async () => (await postgres).database({ migrated: false })

interface Where {
  port?: number
  host?: string
  user?: string
  timeout?: number
}

async function optionsOf({ port, host, user, timeout }: Where = {}) {
  const address = patientAddress(await url())
  const [first = { host: '', port: 0 }] = address.places
  const place = { host: host ?? first.host, port: port ?? first.port }
  const { connectTimeout } = address
  return clientOptions(
    { ...address, user: user ?? address.user, connectTimeout: timeout ?? connectTimeout },
    place,
    'test',
  )
}

async function clientOf(t: ExecutionContext, where: Where | pg.ClientConfig = {}) {
  const client = new Client('types' in where ? where : await optionsOf(where as Where))
  client.on('error', () => undefined)
  t.teardown(() => client.end())
  return client
}

async function connected(t: ExecutionContext, where: Where | pg.ClientConfig = {}) {
  const client = await clientOf(t, where)
  await client.connect()
  return client
}

/** The error that `work` fails with. */
async function errorOf(work: Promise<unknown>): Promise<Error & { code?: string }> {
  return work.then(
    () => {
      throw new Error('it has not failed')
    },
    (error: Error) => error,
  )
}

const ofStatement = async (t: ExecutionContext, ...statements: string[]) => {
  const client = await connected(t)
  for (const statement of statements.slice(0, -1)) await client.query(statement)
  return errorOf(client.query(statements.at(-1) ?? ''))
}

async function relayed(t: ExecutionContext) {
  const link = await startCutLink(t, `http://127.0.0.1:${(await postgres).port}`)
  return { link, port: Number(new URL(link.url).port) }
}

async function listening(t: ExecutionContext, answer: (socket: import('node:net').Socket) => void) {
  const server = createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

interface Case {
  what: string
  make: (t: ExecutionContext) => Promise<Error & { code?: string }>
  code?: string
  message: RegExp
}

/** PostgreSQL is unavailable for all calls. */
const away: Case[] = [
  {
    what: 'a port on which nothing listens',
    make: async (t) => errorOf((await clientOf(t, { port: 1 })).connect()),
    code: 'ECONNREFUSED',
    message: /^connect ECONNREFUSED 127\.0\.0\.1:1$/,
  },
  {
    what: 'a socket file that is missing',
    make: async (t) => errorOf((await clientOf(t, { host: '/nonexistent', port: 1 })).connect()),
    code: 'ENOENT',
    message: /^connect ENOENT \/nonexistent\/\.s\.PGSQL\.1$/,
  },
  {
    what: 'a peer that says nothing',
    make: async (t) => {
      const port = await listening(t, (socket) => socket.on('error', () => undefined))
      return errorOf((await clientOf(t, { port, timeout: 50 })).connect())
    },
    message: /^timeout expired$/,
  },
  {
    what: 'a new connection of a pool to a peer that says nothing',
    make: async (t) => {
      const port = await listening(t, (socket) => socket.on('error', () => undefined))
      const pool = new pg.Pool({ host: '127.0.0.1', port, connectionTimeoutMillis: 50 })
      return errorOf(pool.connect())
    },
    message: /^(Connection terminated due to connection timeout|timeout expired)$/,
  },
  {
    what: 'a peer that closes the connection',
    make: async (t) => {
      const port = await listening(t, (socket) => socket.once('data', () => socket.end()))
      return errorOf((await clientOf(t, { port })).connect())
    },
    message: /^Connection terminated unexpectedly$/,
  },
  {
    what: 'a peer that resets the connection',
    make: async (t) => {
      const port = await listening(t, (socket) => socket.once('data', () => socket.resetAndDestroy()))
      return errorOf((await clientOf(t, { port })).connect())
    },
    code: 'ECONNRESET',
    message: /^read ECONNRESET$/,
  },
  {
    what: 'a statement on a connection that has ended',
    make: async (t) => {
      const client = await connected(t)
      await client.end()
      return errorOf(client.query('select 1'))
    },
    message: /^Client was closed and is not queryable$/,
  },
  {
    what: 'a statement on a connection that has broken',
    make: async (t) => {
      const { link, port } = await relayed(t)
      const client = await connected(t, { port })
      const ended = new Promise<void>((resolve) => client.once('end', resolve))
      link.cut()
      await ended
      return errorOf(client.query('select 1'))
    },
    message: /^Client has encountered a connection error and is not queryable$/,
  },
  {
    what: 'a connection that this side ends during a statement',
    make: async (t) => {
      const client = await connected(t)
      const asked = errorOf(client.query('select pg_sleep(600)'))
      await client.end()
      return asked
    },
    message: /^Connection terminated$/,
  },
  {
    what: 'an answer that never arrives',
    make: async (t) => {
      const client = await connected(t)
      return errorOf(client.query({ text: 'select pg_sleep(600)', query_timeout: 20 } as pg.QueryConfig))
    },
    message: /^Query read timeout$/,
  },
  {
    what: 'a pool that has ended',
    make: async () => {
      const pool = new pg.Pool()
      await pool.end()
      return errorOf(pool.connect())
    },
    message: /^Cannot use a pool after calling end on the pool$/,
  },
  {
    what: 'a backend that an administrator ends',
    make: async (t) => ofStatement(t, 'select pg_terminate_backend(pg_backend_pid())'),
    code: '57P01',
    message: /^terminating connection due to administrator command$/,
  },
  {
    what: 'a PostgreSQL that is a standby and takes no connections',
    make: async (t) => {
      const own = await startPostgres(atExit, { hot_standby: 'off' })
      own.stop('fast')
      writeFileSync(join(own.dataDirectory, 'standby.signal'), '')
      own.start()
      return errorOf((await clientOf(t, { port: own.port })).connect())
    },
    code: '57P03',
    message: /^the database system is (not accepting connections|starting up)$/,
  },
  {
    what: 'a PostgreSQL that takes no more connections',
    make: async (t) => {
      const role = `few_${process.pid}`
      const owner = await connected(t)
      await owner.query(`create role ${role} login connection limit 0`)
      const error = await errorOf((await clientOf(t, { user: role })).connect())
      await owner.query(`drop role ${role}`)
      return error
    },
    code: '53300',
    message: /^too many connections for role "few_\d+"$/,
  },
  {
    what: 'a PostgreSQL that has become read-only',
    make: async (t) => ofStatement(t, 'set default_transaction_read_only = on', 'create table t()'),
    code: '25006',
    message: /^cannot execute CREATE TABLE in a read-only transaction$/,
  },
  {
    what: 'a transaction that was idle for too long',
    make: async (t) => {
      const client = await connected(t)
      const error = once(client, 'error') as Promise<[Error & { code?: string }]>
      await client.query('set idle_in_transaction_session_timeout = 10')
      await client.query('begin')
      return (await error)[0]
    },
    code: '25P03',
    message: /^terminating connection due to idle-in-transaction timeout$/,
  },
]

/** One statement fails for now; others succeed. */
const ofOneStatement: Case[] = [
  {
    what: 'a statement that takes too long',
    make: async (t) => ofStatement(t, 'set statement_timeout = 10', 'select pg_sleep(600)'),
    code: '57014',
    message: /^canceling statement due to statement timeout$/,
  },
  {
    what: 'a lock that another transaction holds',
    make: async (t) => {
      const options = await optionsOf()
      const [client, other] = [await connected(t, options), await connected(t, options)]
      await other.query('select pg_advisory_lock(1)')
      await client.query('set lock_timeout = 10')
      return errorOf(client.query('select pg_advisory_lock(1)'))
    },
    code: '55P03',
    message: /^canceling statement due to lock timeout$/,
  },
  {
    what: 'a pool all of whose connections are in use',
    make: async () => {
      const pool = new pg.Pool({ ...(await optionsOf()), max: 1 })
      const only = await pool.connect()
      pool.options.connectionTimeoutMillis = 20
      const error = await errorOf(pool.connect())
      only.release()
      await pool.end()
      return error
    },
    message: /^timeout exceeded when trying to connect$/,
  },
  {
    what: 'a function whose library is missing',
    make: async (t) => ofStatement(t, `create function f() returns int language c as '/nonexistent', 'f'`),
    code: '58P01',
    message: /^could not access file "\/nonexistent": No such file or directory$/,
  },
  {
    what: 'a function that runs out of disk space',
    make: async (t) => ofStatement(t, `do $$ begin raise sqlstate '53100'; end $$`),
    code: '53100',
    message: /^53100$/,
  },
]

/** The statement of rsm is wrong, or another transaction was first. */
const plain: Case[] = [
  {
    what: 'a key that already exists',
    make: async (t) =>
      ofStatement(t, 'create temporary table t(id int unique)', 'insert into t values (1), (1)'),
    code: '23505',
    message: /^duplicate key value violates unique constraint "t_id_key"$/,
  },
  {
    what: 'a table that is missing',
    make: async (t) => ofStatement(t, 'select from connections_timeout'),
    code: '42P01',
    message: /^relation "connections_timeout" does not exist$/,
  },
  {
    what: 'a fault of PostgreSQL itself',
    make: async (t) => ofStatement(t, `do $$ begin raise sqlstate 'XX000'; end $$`),
    code: 'XX000',
    message: /^XX000$/,
  },
  {
    what: 'a transaction that lost to another one',
    make: async (t) => ofStatement(t, `do $$ begin raise sqlstate '40001'; end $$`),
    code: '40001',
    message: /^40001$/,
  },
]

const tables: [string, Case[], { away: boolean; statement: boolean }][] = [
  ['PostgreSQL is unreachable', away, { away: true, statement: false }],
  ['one statement fails for now', ofOneStatement, { away: true, statement: true }],
  ['a statement is answered', plain, { away: false, statement: false }],
]
for (const [verdict, cases, expected] of tables)
  for (const { what, make, code, message } of cases)
    test(`${verdict}: ${what}`, async (t) => {
      const error = await make(t)
      t.regex(error.message, message)
      t.is(error.code, code)
      t.deepEqual({ away: isAway(error), statement: isOfStatement(error) }, expected)
      t.is(isToBeRepeated(error), code === '40001')
    })

test('a function that cannot be loaded fails only its own call', async (t) => {
  const database = openDatabase(t, await url())
  const pidOf = async () =>
    (await database.ask<{ pid: number }>('api', 'select pg_backend_pid() as pid'))[0]?.pid
  const pid = await pidOf()
  const broken = database.ask('api', `create function f() returns int language c as '/nonexistent', 'f'`)
  await t.throwsAsync(broken, {
    code: 'unavailable',
    message:
      'the store cannot carry this out just now: could not access file "/nonexistent": No such file or directory',
  })
  t.is(database.fault, null)
  t.is(await pidOf(), pid, 'the connection stays')
})

test('a role that PostgreSQL starts to refuse makes the store unavailable', async (t) => {
  const owner = openDatabase(t, await url())
  const role = `later_${process.pid}`
  await owner.ask('api', `create role ${role} login`)
  const address = { ...patientAddress(await url()), user: role }
  const database = createDatabase(address, 'a', createLog('ERROR'))
  t.teardown(() => database.close())
  await database.ask('api', 'select 1')
  await owner.ask('api', `alter role ${role} nologin`)
  await t.throwsAsync(database.ask('write', 'select 1'), { code: 'unavailable' })
  t.regex(database.fault ?? '', /not permitted to log in/)
  await owner.ask('api', `drop role ${role}`)
})
