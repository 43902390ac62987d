import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { commandLine } from '../helpers/clients/command-line.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { bashOnPty, rsm } from '../helpers/terminals/pty.ts'

const former = 'a password for vera'
const next = 'another one for vera'

async function vera(t: Parameters<typeof startTestServer>[0]) {
  const server = await startTestServer(t)
  await server.data('POST', '/api/users', { username: 'vera', password: former, role: 'VIEWER' })
  const home = temporaryDirectory(t)
  const env = cleanEnv(home)
  await runRsm(['login', server.url, '-u', 'vera', '--password-stdin'], env, former)
  const login = async (password: string) =>
    (await server.api('POST', '/api/auth/login', { username: 'vera', password })).status
  return { server, home, env, login }
}

test('A16 passwd asks for the current and the new password without echo, and the stored login stays valid', async (t) => {
  const { home, login } = await vera(t)
  const shell = bashOnPty(t, `${rsm} passwd; echo exit $?; ${rsm} whoami`, home)
  for (const [question, answer] of [
    ['Current password: ', former],
    ['New password: ', next],
    ['Repeat the new password: ', next],
  ] as const) {
    await shell.shows(new RegExp(question))
    shell.type(`${answer}\r`)
  }
  await shell.shows(
    /changed the password of vera; all previous sessions and tokens have ended\s+exit 0\s+vera \(VIEWER\) at/,
  )
  t.false(shell.shown.includes(former) || shell.shown.includes(next))
  t.deepEqual([await login(former), await login(next)], [401, 200])
})

test('A16 passwd --password-stdin reads two lines; a wrong password, a missing line and a token give different errors', async (t) => {
  const { server, env, login } = await vera(t)
  const passwd = (input: string) => runRsm(['passwd', '--password-stdin'], env, input)
  const lone = await passwd(`${former}\n`)
  t.is(lone.exit, 2)
  t.regex(lone.stderr, /two lines: the current password and the new one/)
  const wrong = await passwd(`guess\n${next}\n`)
  t.is(wrong.exit, 3)
  t.regex(wrong.stderr, /The current password is wrong/)
  const short = await passwd(`${former}\nshort\n`)
  t.is(short.exit, 2)
  t.is(short.stderr, 'rsm: new password must have at least 8 characters\n')
  t.is(await login(former), 200)
  const { token } = await server.data('POST', '/api/auth/login', { username: 'vera', password: former })
  const headers = { authorization: `Bearer ${token}` }
  const personal = await server.api('POST', '/api/tokens', { name: 'ci' }, headers)
  const pipeline = await commandLine(
    t,
    server,
    personal.body.data.token,
  )(['passwd', '--password-stdin'], {
    input: `${former}\n${next}\n`,
  })
  t.is(pipeline.exit, 3)
  t.regex(
    pipeline.stderr,
    /vera is logged in with a personal access token; this requires a session\n +rsm login \S+ --username vera/,
  )
  const changed = await passwd(`${former}\n${next}\n`)
  t.deepEqual([changed.exit, changed.stderr], [0, ''])
  t.is((await runRsm(['whoami'], env)).exit, 0)
  t.deepEqual([await login(former), await login(next)], [401, 200])
  const bySession = await server.data('POST', '/api/auth/login', { username: 'vera', password: next })
  const again = await commandLine(
    t,
    server,
    bySession.token,
  )(['passwd', '--password-stdin', '--json'], {
    input: `${next}\n${former}\n`,
  })
  t.deepEqual(JSON.parse(again.stdout), { username: 'vera', loggedIn: false })
  t.regex(again.stderr, /log in again: rsm login \S+ --username vera/)
})
