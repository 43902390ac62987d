import { execFileSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { startPostgres, postgresTest as test } from '../../helpers/servers/postgres.ts'

test('a server connects to a remote PostgreSQL over TLS only, and checks its certificate', async (t) => {
  const directory = temporaryDirectory(t)
  chmodSync(directory, 0o755)
  const at = (name: string) => join(directory, name)
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'ignore' })
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1']
  const pair = (name: string, subject: string, ...more: string[]) =>
    openssl(
      'req',
      '-x509',
      ...ec,
      '-keyout',
      at(`${name}.key`),
      '-out',
      at(`${name}.crt`),
      '-subj',
      `/CN=${subject}`,
      ...more,
    )
  pair('ca', 'an authority')
  const names = ['-addext', 'subjectAltName=IP:0.0.0.0', '-addext', 'basicConstraints=critical,CA:FALSE']
  pair('server', 'pg', '-CA', at('ca.crt'), '-CAkey', at('ca.key'), ...names)
  if (process.getuid?.() === 0) execFileSync('chown', ['postgres', at('server.key')])
  writeFileSync(
    at('hba'),
    'hostssl all remote all trust\nhost all remote all reject\nhost all all 127.0.0.1/32 trust\n',
    { mode: 0o644 },
  )
  const postgres = await startPostgres((end) => t.teardown(end), {
    ssl: 'on',
    ssl_cert_file: at('server.crt'),
    ssl_key_file: at('server.key'),
    hba_file: at('hba'),
  })
  const url = await postgres.database()
  await openDatabase(t, url).ask('api', 'create role remote login superuser')
  const home = temporaryDirectory(t)
  const env = cleanEnv(home, { RSM_ADMIN_PASSWORD: 'a password for tests' })
  const where = ['--keys', join(home, 'keys'), '--data-dir', join(home, 'data')]
  const argv = (store: string, ...more: string[]) => {
    const words = ['server', 'start', '--port', '0', '--server-name', 'a', '--store', store]
    return [...words, ...where, ...more]
  }
  // An address of this machine that is not a loopback address.
  const remote = url.replace('rsm@127.0.0.1', 'remote@0.0.0.0')
  const ca = `sslrootcert=${at('ca.crt')}`
  for (const [store, said, exit] of [
    [remote, /certificate.*\n {5}enable TLS .*sslrootcert=FILE .*--insecure-store\n$/, 6],
    [
      `${remote.replace('0.0.0.0', 'localhost')}?sslmode=verify-full&${ca}`,
      /altnames.*\n.*--insecure-store\n$/,
      6,
    ],
    [`${remote}?sslrootcert=${at('nofile')}`, /sslrootcert.*nofile/, 2],
    [`${remote}?sslrootcert=${at('hba')}`, /sslrootcert.*hba/, 2],
    [`${remote}?sslmode=disable`, /sslmode=disable for 0\.0\.0\.0.*\n.*--insecure-store\n$/, 2],
  ] as const) {
    const ran = await runRsm(argv(store), env)
    t.is(ran.exit, exit, ran.stderr)
    t.regex(ran.stderr, said)
  }
  t.regex((await runRsm(argv(remote, '--insecure-store'), env)).stderr, /pg_hba\.conf rejects connection/)
  const { child, out, shows, done } = startRsm(argv(`${remote}?${ca}`), env)
  t.teardown(() => child.kill('SIGKILL'))
  await shows('listening on')
  const [{ encrypted } = {}] = await openDatabase(t, url).ask<{ encrypted: boolean }>(
    'api',
    `select bool_and(ssl) as encrypted from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'remote'`,
  )
  t.true(encrypted)
  child.kill('SIGTERM')
  t.is((await done).exit, 0)
  t.notRegex(out.stderr, /warning/i)
})
