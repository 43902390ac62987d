import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../fixtures/rsm.ts'

test('server start removes the first password from its environment, and warns once it is no longer needed', async (t) => {
  const home = temporaryDirectory(t)
  const password = 'correct = horse'
  const env = cleanEnv(home, { RSM_ADMIN_PASSWORD: password, RSM_LOG_LEVEL: 'WARN', LATER: 'kept' })
  const start = async () => {
    const server = startRsm(['server', 'start', '--port', '0', '--data-dir', join(home, 'data')], env)
    t.teardown(() => server.child.kill('SIGKILL'))
    await server.shows('listening on')
    return server
  }
  const first = await start()
  const shown = readFileSync(`/proc/${first.child.pid}/environ`, 'latin1')
  t.false(shown.includes('RSM_ADMIN_PASSWORD'))
  t.false(shown.includes('horse'))
  for (const kept of [`HOME=${home}`, 'RSM_LOG_LEVEL=WARN', 'LATER=kept']) t.true(shown.includes(kept), kept)
  const url = /listening on (\S+)/.exec(first.out.stdout)?.[1] ?? ''
  const login = ['login', url, '--username', 'admin', '--password-stdin']
  t.is((await runRsm(login, cleanEnv(home), `${password}\n`)).exit, 0)
  first.child.kill('SIGTERM')
  t.notRegex((await first.done).stderr, /RSM_ADMIN_PASSWORD/)
  const second = await start()
  second.child.kill('SIGTERM')
  t.regex((await second.done).stderr, /"level":40,.*RSM_ADMIN_PASSWORD ignored: .*remove it/)
})

test('server start warns that RSM_AUDIT_COPY has no effect, and refuses --audit-copy', async (t) => {
  const home = temporaryDirectory(t)
  const target = 'file:/var/log/rsm/audit.jsonl'
  // No server starts, because plain HTTP beyond loopback is refused.
  const start = ['server', 'start', '--host', '10.0.0.7', '--data-dir', join(home, 'data')]
  const { stderr } = await runRsm(start, cleanEnv(home, { RSM_AUDIT_COPY: target }))
  t.regex(stderr, /^rsm: warning: RSM_AUDIT_COPY has no effect: .*audit\.md/)
  const flagged = await runRsm([...start, '--audit-copy', target], cleanEnv(home))
  t.is(flagged.exit, 2)
  t.regex(flagged.stderr, /^rsm: unknown option --audit-copy/)
})
