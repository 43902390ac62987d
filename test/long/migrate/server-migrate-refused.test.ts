import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { appendFile, chown, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { openProgram } from '../../helpers/programs/open-program.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { atExit, startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'

/** Packages that the command loads. */
const packages = [
  '@oclif/core',
  'cli-table3',
  'get-east-asian-width',
  'ora',
  'typebox',
  'pg',
  'lowdb',
  'pino',
  'ajv',
  'tweetnacl',
]

test('a migration refuses keys of another store, a damaged or foreign directory, and an unfinished cancel', async (t) => {
  t.timeout(110_000)
  const postgres = await startPostgres(atExit)
  const empty = () => postgres.database({ migrated: false })
  const home = temporaryDirectory(t)
  const env = cleanEnv(home)
  const refused = async (argv: readonly string[], says: RegExp) => {
    const ran = await runRsm(['server', 'migrate', ...argv], env)
    t.is(ran.exit, 6, ran.stderr)
    t.regex(ran.stderr, says)
    t.is(ran.stdout, '')
  }
  const server = await startServerProcess(t)
  const { id } = await server.data('POST', '/api/scripts', { name: 'a', type: 'BASH', content: 'true' })
  await server.data('PATCH', `/api/scripts/${id}`, { content: 'false' })
  t.is((await server.terminate()).code, 0)
  const from = server.dataDir
  const there = ['--from', from, '--store', await empty()]
  const [shared, keys, to] = [await empty(), join(home, 'keys'), join(home, 'to')]
  const onStore = { store: shared, keysDir: keys, dataDir: join(home, 'a'), serverName: 'a' }
  await server.start({ SERVER_OPTIONS: JSON.stringify(onStore) })
  t.is((await server.terminate()).code, 0)

  const foreign = /seal\.key is damaged, or is the key of another store.*\n.*--keys/
  await refused([...there, '--keys', keys], foreign)
  await refused([...there, '--keys', join(keys, 'seal.key')], /seal\.key cannot be read: ENOTDIR/)
  const back = ['--from', shared, '--to', to]
  await refused([...back, '--keys', join(from, 'keys')], foreign)
  // The remains of a server that was killed while it cancelled a task of many hosts.
  const database = openDatabase(t, shared)
  await database.ask('api', `insert into rsm.cancels(task_id, at) values ('a', '2026-01-01T00:00:00.000Z')`)
  await refused(back, /stopped in the middle of a cancel\n.*start a server once/)
  t.false(existsSync(to))

  const damaged = async (name: string, says: RegExp) => {
    const file = join(from, name)
    const whole = await readFile(file)
    await writeFile(file, whole.subarray(0, -10))
    await refused(there, says)
    await writeFile(file, whole)
  }
  await damaged(`scripts/${id}/1.json`, /is damaged: .*JSON.*\n.*rsm server doctor/)
  await damaged('audit.head', /is damaged: .*audit\.head does not hold a head\n.*rsm server doctor/)
  await appendFile(join(from, 'audit', 'audit.log'), '{"id":')
  await refused(there, /the last line of .*audit\.log is cut off or not an entry\n.*start the server once/)
  if (process.getuid?.() === 0) {
    await chown(home, 65534, 65534)
    const root = openProgram(t, packages)
    const argv = [join(root, 'bin/run.js'), 'server', 'migrate', ...there]
    const as = { cwd: '/', env, uid: 65534, gid: 65534, encoding: 'utf8' } as const
    const other = spawnSync(process.execPath, argv, as)
    t.is(other.status, 3)
    t.regex(other.stderr, /data directory \S+ belongs to another user\n.*as root/)
  }

  await server.start()
  t.is((await server.terminate()).code, 0)
  const moved = await runRsm(['server', 'migrate', ...there], env)
  t.is(moved.exit, 0, moved.stderr)
})

test('a migration needs a valid source and a valid target', async (t) => {
  const home = temporaryDirectory(t)
  const [url, nowhere] = ['postgres://rsm@127.0.0.1:1/rsm', 'postgres://rsm@127.0.0.1:1']
  const refused = async (argv: readonly string[], says: RegExp) => {
    const ran = await runRsm(['server', 'migrate', ...argv], cleanEnv(home))
    t.is(ran.exit, 2, ran.stderr)
    t.regex(ran.stderr, says)
    t.is(ran.stdout, '')
  }
  const there = ['--from', home, '--store']
  await refused(['--store', url], /--from is missing/)
  await refused(['--from', ' ', '--store', url], /--from is empty/)
  await refused(['--from', url, '--to', ''], /--to is empty/)
  await refused(['--from', home], /--from a directory needs --store/)
  await refused(['--from', url], /--from a URL needs --to/)
  await refused(['--from', home, '--to', 'x'], /--to does not go with --from a directory/)
  await refused(['--from', url, '--store', url, '--to', 'x'], /--store does not go with --from a URL/)
  await refused([...there, nowhere], /--store has no database/)
  await refused(['--from', nowhere, '--to', 'x'], /--from has no database/)
  await refused([...there, 'postgres://rsm:secret@127.0.0.1:1/rsm'], /--store holds a password/)
  await refused([...there, 'mysql://a@b/c'], /--store is not a PostgreSQL URL/)
})
