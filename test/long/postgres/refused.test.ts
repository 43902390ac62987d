import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { ProcessStatus } from '../../../src/core/protocol/control.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { atExit, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

interface Words {
  store: string
  keys?: string
  name?: string
  dataDir?: string
}

/** A user's home, and `rsm server` in it. */
function place(t: ExecutionContext) {
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { RSM_ADMIN_PASSWORD: 'a password for tests' })
  const words = ({
    store,
    keys = join(home, 'keys'),
    name = 'a',
    dataDir = join(home, `data-${name}`),
  }: Words) => [
    'server',
    'start',
    '--port',
    '0',
    '--store',
    store,
    '--keys',
    keys,
    '--server-name',
    name,
    '--data-dir',
    dataDir,
  ]
  return {
    home,
    run: (argv: readonly string[]) => runRsm(argv, env),
    refused: (given: Words) => runRsm(words(given), env),
    start: async (given: Words) => {
      const server = startRsm(words(given), env)
      t.teardown(() => server.child.kill('SIGKILL'))
      await server.shows('listening on')
      return server
    },
  }
}

/** A proxy for PostgreSQL that reports version 12 to clients; returns its port. */
async function asVersion12(t: ExecutionContext, target: number): Promise<number> {
  const proxy = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    near.on('error', () => far.destroy()).pipe(far)
    far.on('error', () => near.destroy()).on('end', () => near.end())
    far.on('data', (piece) => {
      const said = piece.toString('latin1').replace(/(?<=server_version\0)\d\d/, '12')
      near.write(said, 'latin1')
    })
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  return (proxy.address() as AddressInfo).port
}

test.serial(
  'F30 a server refuses to start on a missing, unreachable, old, read-only or newer database, and names the reason',
  async (t) => {
    const postgres = await startPostgres(atExit)
    const url = await postgres.database()
    const database = openDatabase(t, url)
    const { refused } = place(t)

    const expect = async (store: string, exit: number, said: RegExp) => {
      const ran = await refused({ store })
      t.is(ran.exit, exit, ran.stderr)
      t.regex(ran.stderr, said)
      t.regex(ran.stderr, /^rsm: [^\n]+\n( {5}[^\n]+\n)?$/, 'a sentence, and advice')
      t.is(ran.stdout, '')
    }
    await expect(`${url}-none`, 6, /database "\S+-none" does not exist\n.*createdb/)
    await expect('postgres://rsm@127.0.0.1:1/rsm', 6, /no host takes writes \(127\.0\.0\.1:1: .*ECONNREFUSED/)

    const old = url.replace(`:${postgres.port}/`, `:${await asVersion12(t, postgres.port)}/`)
    await expect(old, 6, /PostgreSQL 12\S* .*is too old: rsm needs 15 or newer\n.*pg_upgradecluster/)

    const readOnly = await postgres.database()
    const name = new URL(readOnly.replace('postgres:', 'http:')).pathname.slice(1)
    await database.ask('api', `alter database ${name} set default_transaction_read_only = on`)
    await expect(readOnly, 6, /no host takes writes .*it is a standby or read-only/)

    const newer = await postgres.database()
    await openDatabase(t, newer).ask('api', 'update rsm.cluster set schema = 99, oldest_server = 98')
    await expect(newer, 6, /its schema is number 99, of a newer rsm.*\n.*start the newer rsm/)
  },
)

test.serial(
  "F30 a server with the name of a living one, with other keys, or with another store's directory is refused",
  async (t) => {
    const postgres = await startPostgres(atExit)
    const store = await postgres.database({ migrated: false })
    const { home, start, refused } = place(t)
    const first = await start({ store })

    const twin = await refused({ store, dataDir: join(home, 'twin') })
    t.is(twin.exit, 6)
    t.regex(twin.stderr, /A server named a is running on this store at http:.*\n.*--server-name/)

    mkdirSync(join(home, 'empty'), { mode: 0o700 })
    const missing = await refused({ store, name: 'b', keys: join(home, 'empty') })
    t.is(missing.exit, 6)
    t.regex(missing.stderr, /seal\.key is missing.*\n.*copy keys\/ from a, which runs on this store/)
    const alone = await startTestServer(t)
    const foreign = await refused({ store, name: 'b', keys: join(alone.dataDir, 'keys') })
    t.is(foreign.exit, 6)
    t.regex(foreign.stderr, /seal\.key is damaged, or is the key of another store.*\n.*copy keys\/ from a/)

    first.child.kill('SIGKILL')
    await first.done
    const successor = await start({ store })
    t.regex(successor.out.stdout, /listening on/, 'the name of a dead server is free at once')
    successor.child.kill('SIGTERM')
    t.is((await successor.done).exit, 0)
    const other = await postgres.database({ migrated: false })
    const elsewhere = await refused({ store: other })
    t.is(elsewhere.exit, 6)
    t.regex(elsewhere.stderr, /was used with the store \S+ at postgres:/)
    const inside = await refused({ store, name: 'c', dataDir: alone.dataDir })
    t.is(inside.exit, 6)
  },
)

test.serial(
  'one of three servers that start at once on an empty database creates admin, and all have the same keys',
  async (t) => {
    const postgres = await startPostgres(atExit)
    const store = await postgres.database({ migrated: false })
    const home = temporaryDirectory(t)
    const names = ['a', 'b', 'c']
    const servers = names.map((name) => {
      const words = ['--store', store, '--keys', join(home, 'keys'), '--server-name', name]
      const argv = [
        'server',
        'start',
        '--port',
        '0',
        '--tls-self-signed',
        '--data-dir',
        join(home, name),
        ...words,
      ]
      const server = startRsm(argv, cleanEnv(home))
      t.teardown(() => server.child.kill('SIGKILL'))
      return server
    })
    await Promise.all(servers.map((server) => server.shows('listening on')))
    const told = servers.filter(({ out }) => out.stderr.includes('created user admin with the password'))
    t.is(told.length, 1)
    // `rsm server install` uses this to decide whether to show a password.
    const made = names.map(async (name) => {
      const status = ['server', 'status', '--json', '--data-dir', join(home, name)]
      return (JSON.parse((await runRsm(status, cleanEnv(home))).stdout) as ProcessStatus).madeFirstUser
    })
    t.deepEqual(
      await Promise.all(made),
      servers.map((server) => told.includes(server)),
    )
    const prints = servers.map(({ out }) => /fingerprint (\S+)/.exec(out.stdout)?.[1])
    t.is(new Set(prints).size, 1)
  },
)

test.serial(
  'commands that need a data directory say what to do instead, whether the server runs or not',
  async (t) => {
    const postgres = await startPostgres(atExit)
    const store = await postgres.database()
    const { home, start, run } = place(t)
    const server = await start({ store })
    const dataDir = join(home, 'data-a')
    const at = (...words: string[]) => run(['server', ...words, '--data-dir', dataDir])
    const backup = ['backup', join(home, 'backup')]
    const expect = async (words: string[], said: RegExp) => {
      const ran = await at(...words)
      t.is(ran.exit, 6, ran.stderr)
      t.regex(ran.stderr, said)
    }
    await expect(['compact'], /the store of this server is postgres:.*\n.*autovacuum/)
    await expect(['doctor'], /whose store is postgres:/)
    await expect(
      ['upgrade', join(home, 'rsm')],
      /the store of this server is postgres:.*\n.*one server after the other/,
    )
    const status = await at('status')
    t.is(status.exit, 0, status.stderr)
    t.regex(status.stdout, /^store +postgres:\/\/rsm@127\.0\.0\.1:\d+\/\S+$/m)
    t.regex(status.stdout, /^a \* +\d/m)
    t.is((await at('retention', '--dry-run')).exit, 0)
    t.is((await at('confirm-clock')).exit, 0)
    postgres.stop('immediate')
    const away = await at('status')
    t.is(away.exit, 0, away.stderr)
    t.regex(away.stdout, /^store fault +.*cannot be reached|no host takes writes/m)
    server.child.kill('SIGTERM')
    t.is((await server.done).exit, 0)
    for (const words of [backup, ['compact'], ['doctor'], ['retention', '--dry-run']])
      await expect(words, /data directory \S+ belongs to a server whose store is postgres:.*\n/)
  },
)
