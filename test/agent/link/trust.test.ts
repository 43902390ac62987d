import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { Distrust } from '../../../src/agent/link/verify.ts'
import { startAgent } from '../../../src/agent/main.ts'
import { isDistrust } from '../../../src/core/protocol/orders.ts'
import { agentOptions, hasty, linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'

test('P19 P37 an order that is unsigned, altered, expired or for another agent does not run, and the error says why', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const script = `touch ${dataDir}/ran`
  const good = (taskId: string) => server.request(agent.agentId, { taskId, script })
  const { signature: _, ...unsigned } = good('unsigned')
  const messages = [
    [unsigned, /missing/],
    [{ ...good('altered'), script: `${script} # altered` }, /does not verify/],
    [{ ...good('param'), params: { ADDED: '1' } }, /does not verify/],
    [server.request('another-agent', { taskId: 'other', script }), /does not verify/],
    [server.request(agent.agentId, { taskId: 'expired', script }, -1_000), /expired/],
    [{ ...good('key'), keyId: 'k2' }, /key k2/],
  ] as const
  for (const [message, reason] of messages) {
    server.of(message.taskId)
    server.send('EXECUTE_SCRIPT', message)
    const complete = await server.completed(message.taskId)
    t.is(complete.exitCode, 126)
    t.is(complete.status, 'FAILED')
    t.is(complete.lastSequence, -1)
    t.regex(complete.error ?? '', reason)
    t.true(isDistrust(complete.error), 'servers recognize it by its first word for the audit log')
  }
  const journal = readFileSync(join(dataDir, 'journal'), 'utf8')
  for (const [{ taskId }] of messages) t.false(journal.includes(`"taskId":"${taskId}"`), taskId)
  t.throws(() => statSync(join(dataDir, 'ran')))
})

test('P37 a forged order does not prevent the genuine one from running', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const request = server.request(agent.agentId, { taskId: 'true-one', script: 'echo ran' })
  server.of('true-one')
  server.send('EXECUTE_SCRIPT', { ...request, script: 'echo forged' })
  await server.completed('true-one')
  server.send('EXECUTE_SCRIPT', request)
  await server.until(() => server.text('true-one') !== '', 'the genuine one runs')
  t.is(server.text('true-one'), 'ran\n')
})

test('an order expires by the server’s clock, however wrong the host’s clock is', async (t) => {
  const { server, agent } = await linkedAgent(t)
  t.pass()
  server.clockSkew = 86_400_000
  server.socket?.terminate()
  await server.linked(2)
  server.execute(agent.agentId, { taskId: 'skewed', script: 'echo ran' })
  t.is((await server.completed('skewed')).status, 'SUCCESS')
})

for (const [how, skew] of [
  ['back', -86_400_000],
  ['forward', 86_400_000],
] as const)
  test(`F13 an agent asks a server whose clock was set ${how} by a day for its time before refusing a signature`, async (t) => {
    const { server, agent } = await linkedAgent(t)
    await server.until(() => server.heartbeats.length > 0, 'the first heartbeat')
    server.clockSkew = skew
    server.execute(agent.agentId, { taskId: 'stepped', script: 'echo ran' })
    t.is((await server.completed('stepped')).error, null)
    t.is(server.text('stepped'), 'ran\n')
  })

test('an agent that registers again with another token trusts the new server key, and not the old one', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  server.intervals = { heartbeatInterval: 1, metricsInterval: 60 }
  let tokens = 0
  const enrollToken = () => `rsm_enr_${tokens++}`
  const agent = await startAgent({ ...agentOptions(server, dataDir), enrollToken, clock: hasty })
  t.teardown(async () => {
    await agent.stop()
    await server.close()
  })
  await server.linked()
  server.execute(agent.agentId, { taskId: 'before', script: 'echo ran' })
  t.is((await server.completed('before')).status, 'SUCCESS')
  const old = server.request(agent.agentId, { taskId: 'old', script: `touch ${dataDir}/ran` })
  server.changeKey('k2')
  let isRevoked = true
  server.intercept = (path) => {
    if (path !== '/api/agent/heartbeat' || !isRevoked) return undefined
    isRevoked = false
    return { status: 401, message: 'revoked' }
  }
  await server.until(() => server.registrations === 2, 'it registers again')
  const beats = server.heartbeats.length
  await server.until(() => server.heartbeats.length > beats, 'it is registered')
  server.execute(agent.agentId, { taskId: 'after', script: 'echo ran' })
  t.is((await server.completed('after')).error, null)
  server.of('old')
  server.send('EXECUTE_SCRIPT', old)
  t.regex((await server.completed('old')).error ?? '', /key k1, not by k2/)
  t.throws(() => statSync(join(dataDir, 'ran')))
})

test('P38 S05 an impostor that answers 401 cannot change the server key, because the enrollment token is used', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  server.intervals = { heartbeatInterval: 1, metricsInterval: 60 }
  const lines: string[] = []
  const log = (_level: string, line: string, more?: object) => {
    lines.push(`${line} ${JSON.stringify(more)}`)
  }
  const agent = await startAgent({ ...agentOptions(server, dataDir), log, clock: hasty })
  t.teardown(async () => {
    await agent.stop()
    await server.close()
  })
  await server.linked()
  const identity = readFileSync(join(dataDir, 'identity.json'), 'utf8')
  const true_ = server.request(agent.agentId, { taskId: 'true-one', script: 'echo ran' })
  server.changeKey('k2')
  server.intercept = (path) =>
    path === '/api/agent/heartbeat' ? { status: 401, message: 'revoked' } : undefined
  await server.until(() => server.registrations === 2, 'it tries to register again')
  server.execute(agent.agentId, { taskId: 'theirs', script: `touch ${dataDir}/ran` })
  t.regex((await server.completed('theirs')).error ?? '', /key k2, not by k1/)
  server.of('true-one')
  server.send('EXECUTE_SCRIPT', true_)
  t.is((await server.completed('true-one')).status, 'SUCCESS')
  t.is(readFileSync(join(dataDir, 'identity.json'), 'utf8'), identity)
  t.throws(() => statSync(join(dataDir, 'ran')))
  t.true(
    lines.some((line) => /could not register again.*another key/.test(line)),
    lines.join('\n'),
  )
})

test('P36 P37 S05 an order recorded on one link is refused as a replay on the next, at any time', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const linkId = () => server.hellos.at(-1)?.linkId ?? ''
  const first = linkId()
  const captured = server.request(agent.agentId, {
    taskId: 'captured',
    script: `touch ${dataDir}/ran`,
    linkId: first,
  })
  server.socket?.terminate()
  await server.linked(2)
  t.not(linkId(), first)
  server.of('captured')
  server.send('EXECUTE_SCRIPT', captured)
  const refused = await server.completed('captured')
  t.is(refused.exitCode, 126)
  t.regex(refused.error ?? '', /^signature is for another link/)
  const { linkId: _, ...without } = captured
  server.of('cut')
  server.send('EXECUTE_SCRIPT', { ...without, taskId: 'cut' })
  t.regex((await server.completed('cut')).error ?? '', /^signature does not verify/)
  t.throws(() => statSync(join(dataDir, 'ran')))
  server.socket?.terminate()
  await server.linked(3)
  await server.until(() => server.errors.length >= 2, 'the next link gets both errors')
  server.socket?.terminate()
  await server.linked(4)
  await server.until(() => server.errors.length >= 4, 'the link after it gets them again')
  t.true(server.errors.every(({ code, message }) => code === 403 && isDistrust(message)))
  for (const at of [0, 2]) t.regex(server.errors[at]?.message ?? '', /EXECUTE_SCRIPT captured/)
  server.execute(agent.agentId, { taskId: 'good', script: 'true', linkId: linkId() })
  t.is((await server.completed('good')).status, 'SUCCESS')
  server.socket?.terminate()
  await server.linked(5)
  server.execute(agent.agentId, { taskId: 'more', script: 'true', linkId: linkId() })
  await server.completed('more')
  t.is(server.errors.length, 4, 'a server that signs correctly does not get them again')
})

test('an agent with allowUnsigned runs unsigned orders', async (t) => {
  const { server, agent } = await linkedAgent(t, { allowUnsigned: true })
  const {
    signature: _,
    keyId: __,
    expiry: ___,
    ...unsigned
  } = server.request(agent.agentId, { taskId: 'plain' })
  server.of('plain')
  server.send('EXECUTE_SCRIPT', unsigned)
  t.is((await server.completed('plain')).status, 'SUCCESS')
})

test('only the owner can read identity and journal, and no script stays behind', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  server.execute(agent.agentId, {
    taskId: 'kept',
    script: 'echo $SECRET # script-text',
    params: { SECRET: 'secret-param' },
  })
  await server.completed('kept')
  for (const name of ['identity.json', 'journal']) t.is(statSync(join(dataDir, name)).mode & 0o077, 0, name)
  t.notRegex(readFileSync(join(dataDir, 'journal'), 'utf8'), /secret-param|script-text/)
})

const asRoot = process.getuid?.() === 0 ? test : test.skip // Only root may become another user.

asRoot('runAs switches to the user and its groups, and /dev/stdout stays writable', async (t) => {
  const { server, agent } = await linkedAgent(t, { allowRunAs: ['nobody'] })
  const script =
    'id -un; id -Gn; echo "$HOME $USER"; echo through-name >> /dev/stdout; grep NoNewPrivs /proc/self/status'
  server.execute(agent.agentId, { taskId: 'as-nobody', script, runAs: 'nobody', workDir: '/' })
  const complete = await server.completed('as-nobody')
  const [user, groups, home, named, privileges] = server.text('as-nobody').split('\n')
  t.is(complete.error, null)
  t.is(user, 'nobody')
  t.is(groups, 'nogroup')
  t.regex(home ?? '', / nobody$/)
  t.is(named, 'through-name')
  t.regex(privileges ?? '', /1$/)
  server.execute(agent.agentId, { taskId: 'closed-dir', script: 'true', runAs: 'nobody', workDir: '/root' })
  t.is((await server.completed('closed-dir')).exitCode, 126)
  server.execute(agent.agentId, {
    taskId: 'python',
    scriptType: 'PYTHON',
    script: 'import os; print(os.getuid() != 0)',
    runAs: 'nobody',
    workDir: '/',
  })
  await server.completed('python')
  t.is(server.text('python'), 'True\n')
})

test('S05 each report of refused messages begins so that servers audit it, also the sum of those beyond the limit', (t) => {
  const distrust = new Distrust(systemClock, () => undefined)
  for (let n = 0; n < 200; n++) distrust.note(`EXECUTE_SCRIPT t${n}`, 'signature missing')
  const messages = distrust.messages()
  t.true(messages.length < 200)
  t.regex(messages.at(-1) ?? '', /\d+ more times$/)
  t.deepEqual(
    messages.filter((message) => !isDistrust(message)),
    [],
  )
})
