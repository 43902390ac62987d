import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { appShows, enableTotp } from '../helpers/clients/totp.ts'
import { adminPassword, startTestServer } from '../helpers/servers/server.ts'
import { bashOnPty, rsm } from '../helpers/terminals/pty.ts'

async function admin(t: Parameters<typeof startTestServer>[0]) {
  const server = await startTestServer(t)
  const home = temporaryDirectory(t)
  const env = cleanEnv(home)
  await runRsm(['login', server.url, '-u', 'admin', '--password-stdin'], env, adminPassword)
  return { server, home, env }
}

test('totp enable shows a QR code and key, checks a code and prints recovery codes; login then asks for codes', async (t) => {
  const { server, home } = await admin(t)
  const line = `${rsm} totp enable > codes; echo exit $?; ${rsm} login ${server.url} -u admin; echo exit $?`
  const shell = bashOnPty(t, line, home)
  await shell.shows(/Current password: /)
  shell.type(`${adminPassword}\r`)
  const [, secret = ''] = await shell.shows(/type the key ([A-Z2-7]{32}) into it/)
  await shell.shows(/[▀▄█]{20}/)
  await shell.shows(/Code: /)
  shell.type(`${appShows(secret, -1)}\r`)
  await shell.shows(/exit 0/)
  await shell.shows(/Password: $/)
  const from = shell.shown.length
  shell.type(`${adminPassword}\r`)
  await shell.shows(/Code: /, from)
  shell.type(`${appShows(secret)}\r`)
  await shell.shows(/logged in to .* as admin \(ADMIN\)[^]*exit 0/, from)
  t.false(shell.shown.includes(adminPassword))
  const { stdout } = await runRsm(['api', 'GET', '/api/auth/me'], cleanEnv(home))
  t.true(JSON.parse(stdout).totp)
})

test('login without a terminal needs --code; totp disable accepts a recovery code; users edit can disable TOTP', async (t) => {
  const { server, env } = await admin(t)
  const { secret, recoveryCodes } = await enableTotp(server, adminPassword)
  const login = (...words: string[]) =>
    runRsm(['login', server.url, '-u', 'admin', '--password-stdin', ...words], env, adminPassword)
  const without = await login()
  t.is(without.exit, 3)
  t.regex(without.stderr, /also needs a code from an authenticator app\n +give it with --code/)
  const wrong = await login('--code', '000000')
  t.is(wrong.exit, 3)
  t.regex(wrong.stderr, /The code is wrong, or was used before/)
  t.is((await login('--code', appShows(secret))).exit, 0)
  const disabled = await runRsm(['totp', 'disable', '--code', recoveryCodes[0] ?? ''], env)
  t.is(disabled.exit, 0, disabled.stderr)
  t.is((await login()).exit, 0)

  const vera = { username: 'vera', password: 'long enough' }
  await server.data('POST', '/api/users', { ...vera, role: 'VIEWER' })
  const { token } = await server.data('POST', '/api/auth/login', vera)
  await enableTotp(server, vera.password, token)
  const rsmOf = commandLine(t, server)
  t.regex((await rsmOf(['users', 'show', 'vera'])).stdout, /^totp +yes$/m)
  t.is((await rsmOf(['users', 'edit', 'vera', '--disable-totp'])).exit, 0)
  t.regex((await rsmOf(['users', 'show', 'vera'])).stdout, /^totp +no$/m)
  t.is((await server.api('POST', '/api/auth/login', vera)).status, 200)
})
