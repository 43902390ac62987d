import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { hostNamed, pageOf, startFakeServer } from '../../fixtures/fake-server.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { until } from '../../helpers/until.ts'

const parts = (...texts: string[]) => texts.map((text) => `${text}\u0000`).join('')
const ask = (env: Record<string, string>, ...words: string[]) =>
  runRsm(['__complete', 'zsh'], env, parts(...words))

async function staysSilent(t: ExecutionContext, env: Record<string, string>, ...words: string[]) {
  const ran = await ask(env, ...words)
  t.deepEqual(
    { exit: ran.exit, stderr: ran.stderr, stdout: ran.stdout.trim() },
    { exit: 0, stderr: '', stdout: '' },
  )
}

test('completion prints nothing and exits with 0 without a server, without a login, or if the server does not answer', async (t) => {
  const home = temporaryDirectory(t)
  await staysSilent(t, cleanEnv(home), 'hosts', 'show', 'w')
  await staysSilent(t, cleanEnv(home, { RSM_URL: 'http://127.0.0.1:1' }), 'hosts', 'show', 'w')
  t.false(existsSync(join(home, '.cache/rsm/names')))
  await staysSilent(
    t,
    cleanEnv(home, { RSM_URL: 'http://127.0.0.1:1', RSM_TOKEN: 'x' }),
    'hosts',
    'show',
    'w',
  )
  await staysSilent(t, cleanEnv(home, { RSM_URL: 'nonsense', RSM_TOKEN: 'x' }), 'hosts', 'show', 'w')
  const deaf = createServer().listen(0, '127.0.0.1')
  t.teardown(() => deaf.close())
  await until('the server listens', () => deaf.listening)
  const { port } = deaf.address() as { port: number }
  const RSM_URL = `http://127.0.0.1:${port}`
  await staysSilent(t, cleanEnv(home, { RSM_URL, RSM_TOKEN: 'x' }), 'hosts', 'show', 'w')
})

test('completion does not wait for a named pipe given as the token file', async (t) => {
  const home = temporaryDirectory(t)
  const pipe = join(home, 'pipe')
  execFileSync('mkfifo', [pipe])
  const env = cleanEnv(home, { RSM_URL: 'http://127.0.0.1:1' })
  await staysSilent(t, env, 'hosts', 'show', '--token-file', pipe, 'w')
})

test('invalid arguments of `__complete` and a broken configuration are ignored silently', async (t) => {
  const home = temporaryDirectory(t)
  for (const argv of [['__complete'], ['__complete', 'tcsh'], ['__complete', 'bash']])
    t.like(await runRsm(argv, cleanEnv(home), '\u0000\u0000'), { exit: 0, stderr: '' })
  const file = join(home, 'file')
  writeFileSync(file, '{')
  await staysSilent(t, cleanEnv(home, { XDG_CONFIG_HOME: file }), 'context', 'use', 'p')
})

test("completion asks the server that the line names, with that server's token, and caches the answer", async (t) => {
  let asked = 0
  const server = await startFakeServer(t, {
    'GET /api/hosts': ({ headers }) => {
      asked++
      t.is(headers.authorization, 'Bearer of-prod')
      return pageOf([
        hostNamed(1, 'web1'),
        { ...hostNamed(2, 'web2'), statusReason: 'no\u001b[31m heart\nbeat' },
      ])
    },
  })
  const home = temporaryDirectory(t)
  const env = cleanEnv(home)
  execFileSync('sh', ['-c', 'mkdir -p "$0/config/rsm"', home])
  const prod = { url: server.url }
  const file = { current: 'other', contexts: { prod, other: { url: 'http://127.0.0.1:1' } } }
  writeFileSync(join(home, 'config/rsm/config.json'), JSON.stringify(file))
  const tokens = { prod: { ...prod, token: 'of-prod' } }
  writeFileSync(join(home, 'config/rsm/tokens.json'), JSON.stringify(tokens))
  const line = ['hosts', 'show', '--context=prod', 'w']
  let stdout = ''
  await until('an answer', async () => (stdout = (await ask(env, ...line)).stdout).includes('web1'))
  const shown = stdout.split('\n')
  t.is(shown.length, 4)
  t.regex(shown[1] ?? '', /^\+web1\tweb1/)
  t.regex(shown[2] ?? '', /^\+web2\tweb2 .* no \[31m heart beat$/)
  t.true(existsSync(join(home, '.cache/rsm/names')))
  await until('an answer from the cache', async () => {
    const asking = asked
    return (await ask(env, ...line)).stdout.includes('web1') && asked === asking
  })
})
