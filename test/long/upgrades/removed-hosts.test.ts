import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { commandLine } from '../../helpers/clients/command-line.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

test('A13 a removed agent service stays up over restarts without rejoining, until its token file has a new token', async (t) => {
  const server = await startTestServer(t, { heartbeatInterval: 1 })
  const rsm = commandLine(t, server)
  const home = temporaryDirectory(t)
  const tokenFile = join(home, 'enroll.token')
  const dataDir = join(home, 'agent')
  const join_ = async () => {
    const { stdout } = await rsm(['hosts', 'join', '--max-uses', '20', '--json'])
    writeFileSync(tokenFile, JSON.parse(stdout).token)
  }
  await join_()
  // The settings of rsm agent install.
  const environment = { RSM_AGENT_URL: server.url, RSM_AGENT_ENROLL_TOKEN_FILE: tokenFile }
  const service = () => {
    const argv = ['agent', 'run', '--data-dir', dataDir, '--hostname', 'web1']
    const started = startRsm(argv, cleanEnv(home, environment))
    t.teardown(() => started.child.kill('SIGKILL'))
    return started
  }
  const status = () => rsm(['agent', 'status', '--data-dir', dataDir])
  const linked = () => until('it is linked', async () => (await status()).exit === 0)
  let running = service()
  await linked()
  const removed = await rsm(['hosts', 'remove', 'web1', '--yes'])
  t.is(removed.stdout, 'removed web1\n')
  t.regex(
    removed.stderr,
    /^rsm: 1 enrollment token is open, .*: 1 \(19 of 20 uses left, until .*\); to end one: rsm enrollments remove 1\n$/,
  )
  for (let starts = 0; starts < 2; starts++) {
    await until('the status says why', async () => (await status()).stdout.includes('web1) was removed'))
    const said = await status()
    t.is(said.exit, 1)
    t.regex(said.stdout, /^error +no heartbeat reaches the server: .*web1\) was removed.*rsm hosts join$/m)
    t.regex(said.stdout, /^ +replace the old token with the new one/m)
    await delay(2_000)
    t.is(running.child.exitCode, null, running.out.stderr)
    t.is((await server.data('GET', '/api/hosts')).totalElements, 0)
    running.child.kill('SIGTERM')
    t.is((await running.done).exit, 0)
    running = service()
  }
  running.child.kill('SIGTERM')
  await running.done
  await join_()
  running = service()
  await linked()
  const revoked = await rsm(['hosts', 'revoke', 'web1', '--yes'])
  t.regex(revoked.stderr, /^rsm: 2 enrollment tokens are open/)
  await until('the status says why', async () => (await status()).stdout.includes('web1) was revoked'))
  t.regex((await status()).stdout, /rsm hosts join --replace web1$/m)
})
