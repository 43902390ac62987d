import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'

test('server install configures a server of a shared store, and refuses options that server start refuses', async (t) => {
  const home = temporaryDirectory(t)
  const password = join(home, 'password')
  writeFileSync(password, 'a secret\n', { mode: 0o600 })
  const keys = join(home, 'keys')
  const store = 'postgres://rsm@pg1,pg2/rsm'
  const run = (...words: string[]) => runRsm(['server', 'install', '--dry-run', ...words], cleanEnv(home))
  const install = (...words: string[]) => run('--store', store, ...words)
  const named = ['--keys', keys, '--server-name', 'rsm1']
  const { exit, stdout, stderr } = await install(...named, '--store-password-file', password)
  t.is(exit, 0, stderr)
  for (const line of [
    `RSM_STORE=${store}`,
    `RSM_KEYS=${keys}`,
    'RSM_SERVER_NAME=rsm1',
    `RSM_STORE_PASSWORD_FILE=${password}`,
    `ReadWritePaths=${keys}`,
    `create ${keys}`,
  ])
    t.true(stdout.includes(line), `${line}\n${stdout}`)
  t.false(stdout.includes('a secret'))

  const refused = async (said: RegExp, ...words: string[]) => {
    const ran = await run('--store', ...words)
    t.is(ran.exit, 2, ran.stderr)
    t.regex(ran.stderr, said)
  }
  await refused(/--store needs --server-name/, store, '--keys', keys)
  await refused(/--store needs --keys/, store, '--server-name', 'rsm1')
  await refused(/sslmode=disable for pg1.*\n.*--insecure-store/, `${store}?sslmode=disable`, ...named)
  const plain = await run('--store', `${store}?sslmode=disable`, ...named, '--insecure-store')
  t.is(plain.exit, 0, plain.stderr)
  t.true(plain.stdout.includes('RSM_INSECURE_STORE=yes'), plain.stdout)
  await refused(/holds a password/, 'postgres://rsm:secret@pg1/rsm', ...named)
})
