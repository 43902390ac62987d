import test from 'ava'
import { hostNamed, pageOf, startFakeServer } from '../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'

const evil = 'a\u001b]0;x\u0007\u001b[2J\u009b31m\u202eb\nadmin@host $ '
const user = { id: 1, username: evil, role: evil, rights: [evil], token: { kind: 'personal', name: evil } }

/** Characters that affect a terminal, never shown to people. */
const obeyed = /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/u

for (const [words, lines] of [
  [['hosts', 'list', '-o', 'names'], 2],
  [['hosts', 'list', '-o', 'nodeset'], 1],
  [['hosts', 'list'], 3],
  [['whoami'], 1],
  [['login', '--token-stdin'], 1],
  [['users', 'show', '1'], undefined],
  [['schedules', 'run', '1'], 1],
  [['hosts', 'edit', '1', '-t', 'a=b'], 1],
] as const)
  test(`S06 names from a malicious server have no effect on the terminal in: rsm ${words.join(' ')}`, async (t) => {
    const home = temporaryDirectory(t)
    const host = hostNamed(1, evil)
    const schedule = { id: 1, name: evil }
    const server = await startFakeServer(t, {
      'GET /api/health': () => ({ status: 'UP' }),
      'GET /api/auth/me': () => user,
      'GET /api/hosts': () => pageOf([host, hostNamed(2, `${evil}2`)]),
      'GET /api/hosts/1': () => host,
      'PATCH /api/hosts/1': () => host,
      'PATCH /api/hosts/2': () => host,
      'GET /api/users': () => pageOf([user]),
      'GET /api/users/1': () => user,
      'GET /api/schedules': () => pageOf([schedule]),
      'GET /api/schedules/1': () => schedule,
      'POST /api/schedules/1/run': () => ({ taskId: evil, hostCount: 1 }),
    })
    const env = cleanEnv(home, { RSM_URL: server.url, RSM_TOKEN: 'rsm_pat_x' })
    const input = words[0] === 'login' ? 'rsm_pat_x\n' : ''
    const shown = await runRsm(words, env, input)
    t.is(shown.exit, 0, shown.stderr)
    t.is(obeyed.exec(shown.stdout + shown.stderr), null)
    if (lines !== undefined) t.is(shown.stdout.trimEnd().split('\n').length, lines, shown.stdout)
    const asJson = await runRsm(
      [...words.filter((word) => word !== '-o' && word !== 'names' && word !== 'nodeset'), '--json'],
      env,
      input,
    )
    t.is(obeyed.exec(asJson.stdout), null)
    t.true(JSON.stringify(JSON.parse(asJson.stdout)).includes(JSON.stringify(evil).slice(1, -1)))
  })
