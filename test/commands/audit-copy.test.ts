import { join } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'

test('--audit-copy names what it takes, before anything is made', async (t) => {
  const home = temporaryDirectory(t)
  const data = join(home, 'data')
  const run = (target: string) =>
    runRsm(['server', 'start', '--port', '0', '--data-dir', data, '--audit-copy', target], cleanEnv(home))
  const relative = await run('file:audit.jsonl')
  t.is(relative.exit, 2)
  t.regex(relative.stderr, /--audit-copy takes no file:audit\.jsonl: the path has to begin with \//)
  t.regex(relative.stderr, /it takes file:\/path\/audit\.jsonl, syslog:, syslog\+tcp:\/\/HOST:PORT/)
  t.is((await run(`file:${data}/audit/copy`)).exit, 2)
})

test('server install gives the unit the directory of an audit copy, and refuses a bad target before it changes anything', async (t) => {
  const env = cleanEnv(temporaryDirectory(t))
  const run = (target: string) => runRsm(['server', 'install', '--dry-run', '--audit-copy', target], env)
  const { stdout, stderr } = await run('file:/var/log/rsm/audit.jsonl')
  t.regex(stdout, /^ +\+? ?ReadWritePaths=-\/var\/log\/rsm$/m, stderr)
  t.regex(stdout, /RSM_AUDIT_COPY="?file:\/var\/log\/rsm\/audit\.jsonl/)
  t.is((await run('file:/var/lib/rsm/server/audit/copy')).exit, 2)
  t.is((await run('syslog+tcp://logs')).exit, 2)
})
