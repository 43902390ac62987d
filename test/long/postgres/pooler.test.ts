import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext, TestFn } from 'ava'
import { refusePooler } from '../../../src/server/storage/postgres/connection/session.ts'
import { openDatabase } from '../../helpers/servers/open-database.ts'
import { postgresTest, sharedPostgres } from '../../helpers/servers/postgres.ts'
import { onSteadyPort } from '../../helpers/servers/steady-port.ts'
import { skipped } from '../../helpers/skipped.ts'
import { until } from '../../helpers/until.ts'

const hasPgbouncer = spawnSync('pgbouncer', ['--version']).error === undefined
const test: TestFn = hasPgbouncer ? postgresTest : skipped('pgbouncer is missing: apt install pgbouncer')

const isOpen = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })

/** Returns the URL of a database through a pgbouncer with these settings. */
async function throughPgbouncer(t: ExecutionContext, url: string, settings: string): Promise<string> {
  const { port: behind, pathname } = new URL(url.replace('postgres:', 'http:'))
  const directory = mkdtempSync(join(tmpdir(), 'rsm-pgbouncer-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'pgbouncer.ini')
  // pgbouncer does not run as root.
  const isRoot = process.getuid?.() === 0
  const as = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups'] : []
  const words = [...as, 'pgbouncer', '-q', file]
  return onSteadyPort(async (port) => {
    writeFileSync(
      file,
      `[databases]
* = host=127.0.0.1 port=${behind} user=rsm
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
${settings}
`,
    )
    if (isRoot) execFileSync('chown', ['-R', 'postgres', directory])
    const child = spawn(words[0] ?? '', words.slice(1), { cwd: '/', stdio: ['ignore', 'ignore', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    await until('pgbouncer listens', () => {
      if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}`)
      return isOpen(port)
    })
    return `postgres://rsm@127.0.0.1:${port}${pathname}`
  })
}

const refused = { code: 'unavailable', message: /a pooler such as pgbouncer answers there/ } as const
const passing = 'ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout'

test('F30 pgbouncer with default settings is refused, and so is one that gives each transaction another session', async (t) => {
  const postgres = await sharedPostgres()
  const url = await postgres.database()
  await t.notThrowsAsync(refusePooler(openDatabase(t, url)))
  const asItComes = openDatabase(t, await throughPgbouncer(t, url, ''))
  await t.throwsAsync(refusePooler(asItComes), refused)
  const byTransaction = openDatabase(t, await throughPgbouncer(t, url, `pool_mode = transaction\n${passing}`))
  await t.throwsAsync(refusePooler(byTransaction), refused)
  const bySession = openDatabase(t, await throughPgbouncer(t, url, `pool_mode = session\n${passing}`))
  await t.notThrowsAsync(refusePooler(bySession))
})
