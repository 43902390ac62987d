import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'

test('the PostgreSQL password is read from its file or from ~/.pgpass; a missing or wrong password is reported', async (t) => {
  const directory = temporaryDirectory(t)
  chmodSync(directory, 0o755)
  const hba = join(directory, 'pg_hba.conf')
  const rules = 'host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n'
  writeFileSync(hba, rules, { mode: 0o644 })
  const postgres = await startPostgres((end) => t.teardown(end), { hba_file: hba })
  const url = await postgres.database()
  await openDatabase(t, url).ask('api', `create role locked login superuser password 'right'`)
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { RSM_ADMIN_PASSWORD: 'a password for tests' })
  const words = Object.entries({
    '--port': '0',
    '--store': url.replace('rsm@', 'locked@'),
    '--keys': join(home, 'keys'),
    '--server-name': 'a',
    '--data-dir': join(home, 'data'),
  }).flat()
  const argv = ['server', 'start', ...words]
  const file = join(home, 'password')
  const byFile = [...argv, '--store-password-file', file]

  async function refused(given: readonly string[], said: RegExp): Promise<void> {
    const { exit, stderr } = await runRsm(given, env)
    t.is(exit, 6, stderr)
    t.regex(stderr, said)
    t.regex(stderr, /^rsm: [^\n]+\n {5}[^\n]+\n$/, 'one sentence and its hint')
  }
  async function served(given: readonly string[]): Promise<void> {
    const { child, out, shows, done } = startRsm(given, env)
    t.teardown(() => child.kill('SIGKILL'))
    await shows('listening on')
    child.kill('SIGTERM')
    t.is((await done).exit, 0)
    t.notRegex(out.stderr, /warning/i)
  }
  await refused(
    argv,
    /:\d+ asks for a password, and neither --store-password-file nor .*\n.*--store-password-file/,
  )
  writeFileSync(file, 'wrong\n', { mode: 0o600 })
  await refused(byFile, /password authentication failed .*\n.*--store-password-file/)
  writeFileSync(file, 'right\n')
  await served(byFile)
  writeFileSync(join(home, '.pgpass'), '127.0.0.1:*:*:locked:right\n', { mode: 0o600 })
  await served(argv)
})
