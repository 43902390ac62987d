import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

/** Two hosts with agents, a stored script `is-well` with a param PORT, and files. */
async function place(t: ExecutionContext) {
  const server = await startTestServer(t)
  const work = temporaryDirectory(t)
  for (const hostname of ['web1', 'web2']) await realAgent(t, server, { hostname })
  const content = '#!/bin/bash\n# rsm: param PORT default=8000\necho "asked $PORT"; exit "${WELL:-3}"'
  await server.data('POST', '/api/scripts', { name: 'is-well', type: 'BASH', content })
  const undo = join(work, 'undo.sh')
  writeFileSync(undo, `# rsm: timeout=7\necho "undone $RSM_HOST"; echo "$RSM_HOST" >> ${work}/undone\n`)
  const env = cleanEnv(work, { RSM_URL: server.url, RSM_TOKEN: server.token })
  const rsm = (...words: string[]) => runRsm(words, env)
  const gates = ['--verify', 'is-well', '--verify-retries', '1', '--verify-interval', '0', '--rollback', undo]
  return { server, work, rsm, gates }
}

test('a command that fails verification stops at the canary and is rolled back there only', async (t) => {
  const { work, rsm, gates } = await place(t)
  const ran = await rsm('exec', '-a', '--strategy', 'sequential', ...gates, '--', 'echo deployed')
  t.is(ran.exit, 1)
  t.is(
    ran.stdout,
    'web1: deployed\nweb1 [verify]: asked 8000\nweb1 [verify]: asked 8000\nweb1 [rollback]: undone web1\n',
  )
  const reason = 'FAILED, exit 3: verification failed: exit code 3 (the last of 2 attempts); rolled back'
  t.true(ran.stderr.includes(`rsm: web1: ${reason}\n`), ran.stderr)
  t.regex(ran.stderr, /^rsm: web2: SKIPPED/m)
  t.is(readFileSync(join(work, 'undone'), 'utf8'), 'web1\n')
  const shown = await rsm('tasks', 'show', 'latest')
  t.regex(shown.stdout, /^verify +is-well \(BASH\), again up to 1 time, every 0 s; 300 s each$/m)
  t.regex(shown.stdout, /^rollback +undo(\.sh)? \(BASH\); 7 s$/m)
  t.regex(shown.stdout, /rolled back/)
})

test('the exit code of a single host is that of its verification, and a successful one is verified once', async (t) => {
  const { work, rsm, gates } = await place(t)
  const bad = await rsm('exec', '-w', 'web2', ...gates, '--json', '--', 'true')
  t.is(bad.exit, 3)
  const [result] = JSON.parse(bad.stdout).results
  t.deepEqual(result.verify, { status: 'FAILED', exitCode: 3, attempts: 2 })
  t.deepEqual(result.rollback, { status: 'SUCCESS', exitCode: 0 })
  t.is(readFileSync(join(work, 'undone'), 'utf8'), 'web2\n')
  const good = await rsm('exec', '-w', 'web2', '-p', 'WELL=0', ...gates, '--json', '--', 'true')
  t.is(good.exit, 0, good.stderr)
  const check = join(work, 'check.sh')
  writeFileSync(check, 'exit 0\n')
  const fine = await rsm('exec', '-w', 'web2', '--verify', check, '--json', '--', 'true')
  t.is(fine.exit, 0, fine.stderr)
  t.deepEqual(JSON.parse(fine.stdout).results[0].verify, { status: 'SUCCESS', exitCode: 0, attempts: 1 })
})

test('a plan shows the verification and rollback scripts, and starts nothing', async (t) => {
  const { server, rsm, gates } = await place(t)
  const plan = await rsm('exec', '-a', ...gates, '--plan', '--', 'echo deployed')
  t.is(plan.exit, 0, plan.stderr)
  t.regex(plan.stdout, /^verify: is-well \(BASH\), again up to 1 time, every 0 s; 300 s each$/m)
  t.regex(plan.stdout, /^PORT=8000$/m)
  t.regex(plan.stdout, /\necho deployed\n\nverify:\n#!\/bin\/bash[^]*\n\nrollback:\n# rsm: timeout=7\n/)
  const json = JSON.parse((await rsm('exec', '-a', ...gates, '--plan', '--json', '--', 'true')).stdout)
  t.like(json.verify, { scriptName: 'is-well', retries: 1, intervalSeconds: 0, timeout: 300 })
  t.like(json.rollback, { type: 'BASH', timeout: 7 })
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
})

test('invalid options of gates are refused before any request', async (t) => {
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: 'http://127.0.0.1:1', RSM_TOKEN: 'secret' })
  for (const [words, message] of [
    [['--verify-retries', '2'], /--verify-retries is for --verify FILE\|NAME/],
    [['--verify-interval', '2s'], /--verify-interval is for --verify FILE\|NAME/],
    [['--verify', './not-there.sh'], /not-there\.sh/],
    [['--verify', 'x', '--verify-retries=-1'], /--verify-retries takes a number from 0 to 1000, not -1/],
    [['--verify', 'x', '--verify-retries', '1001'], /not 1001/],
    [['--verify', 'x', '--verify-interval', 'soon'], /soon/],
  ] as const) {
    const ran = await runRsm(['exec', '-a', ...words, '--', 'true'], env)
    t.is(ran.exit, 2, ran.stderr)
    t.regex(ran.stderr, message)
  }
})
