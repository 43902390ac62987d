import test from 'ava'
import { type Identity, ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { counted, finished, running, startTask, statusesOf, task } from '../../helpers/clients/tasks.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'

async function enrolled(server: TestServer, count: number): Promise<Identity[]> {
  const identities: Identity[] = []
  for (let n = 1; n <= count; n++) identities.push(await server.enroll(`web${n}`))
  return identities
}
const idsOf = (identities: Identity[]) => identities.map(({ hostId }) => hostId)
const at = (identities: Identity[], index: number) => {
  const identity = identities[index]
  if (!identity) throw new Error(`no host ${index}`)
  return identity
}

test('hosts that are unreachable at their turn count as failures, and at most maxFailures are tolerated', async (t) => {
  const server = await startTestServer(t)
  const hosts = await enrolled(server, 6)
  for (const index of [0, 2, 4, 5]) (await ScriptedAgent.link(server, at(hosts, index))).serve()
  const taskId = await startTask(server, idsOf(hosts), {
    strategy: 'ROLLING',
    batchSize: 1,
    maxFailures: 1,
    queueSeconds: 0,
  })
  const ended = await finished(server, taskId)
  t.deepEqual(statusesOf(ended), ['SUCCESS', 'UNREACHABLE', 'SUCCESS', 'UNREACHABLE', 'SKIPPED', 'SKIPPED'])
  t.is(ended.status, 'FAILED')
})

test('a host whose link drops at its turn may return within queueSeconds, and starts once', async (t) => {
  const server = await startTestServer(t)
  const hosts = await enrolled(server, 3)
  const [first, second, third] = await Promise.all(hosts.map((host) => ScriptedAgent.link(server, host)))
  const taskId = await startTask(server, idsOf(hosts), { strategy: 'SEQUENTIAL', queueSeconds: 600 })
  await first?.execution(taskId)
  await second?.cut()
  first?.complete(taskId, 0, { lastSequence: -1 })
  await first?.released(taskId)
  t.deepEqual(
    statusesOf(
      await counted(server, taskId, ({ SUCCESS }) => SUCCESS === 1).then(() => task(server, taskId)),
    ),
    ['SUCCESS', 'PENDING', 'PENDING'],
  )
  const back = await ScriptedAgent.link(server, at(hosts, 1))
  await back.execution(taskId)
  // The link drops again during the execution, whose end comes over the next link.
  await back.cut()
  const again = await ScriptedAgent.link(server, at(hosts, 1), {
    tasks: [{ taskId, state: 'EXITED', lastSequence: -1 }],
  })
  again.complete(taskId, 0, { lastSequence: -1 })
  await third?.execution(taskId)
  third?.complete(taskId, 0, { lastSequence: -1 })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
  t.false(again.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})

test('a cancel during a strategy ends running hosts, prevents pending ones, and keeps ended results', async (t) => {
  const server = await startTestServer(t)
  const hosts = await enrolled(server, 4)
  const agents = await Promise.all(hosts.map((host) => ScriptedAgent.link(server, host)))
  const taskId = await startTask(server, idsOf(hosts), { strategy: 'ROLLING', batchSize: [1, 2] })
  const [first, second, third, fourth] = agents
  await first?.execution(taskId)
  first?.complete(taskId, 0, { lastSequence: -1 })
  await second?.execution(taskId)
  await third?.execution(taskId)
  await running(server, taskId, 2)
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  for (const agent of [second, third]) {
    await agent?.next('CANCEL_SCRIPT')
    agent?.complete(taskId, 143, { status: 'CANCELLED', lastSequence: -1 })
  }
  const ended = await finished(server, taskId)
  t.deepEqual(statusesOf(ended), ['SUCCESS', 'CANCELLED', 'CANCELLED', 'CANCELLED'])
  t.is(ended.status, 'CANCELLED')
  await fourth?.settled()
  t.false(fourth?.heard.some(({ type }) => type === 'EXECUTE_SCRIPT'))
})

test('a host deleted during a strategy is not waited for, and the others continue', async (t) => {
  const server = await startTestServer(t)
  const hosts = await enrolled(server, 3)
  const [first, , third] = await Promise.all(hosts.map((host) => ScriptedAgent.link(server, host)))
  const taskId = await startTask(server, idsOf(hosts), { strategy: 'ROLLING', batchSize: 1, maxFailures: 2 })
  await first?.execution(taskId)
  await server.data('DELETE', `/api/hosts/${at(hosts, 1).hostId}?force=true`)
  await server.data('DELETE', `/api/hosts/${at(hosts, 0).hostId}?force=true`)
  await third?.execution(taskId)
  third?.complete(taskId, 0, { lastSequence: -1 })
  t.deepEqual(statusesOf(await finished(server, taskId)), ['LOST', 'UNREACHABLE', 'SUCCESS'])
})

test('a retry runs, in order, existing hosts that did not succeed; a second retry the rest; nothing runs twice', async (t) => {
  const server = await startTestServer(t)
  const hosts = await enrolled(server, 5)
  const starts = new Map<string, number>()
  let isMended = false
  const serve = (agent: ScriptedAgent, index: number) =>
    agent.serve(({ taskId, params }) => {
      starts.set(`${taskId}/${index}`, (starts.get(`${taskId}/${index}`) ?? 0) + 1)
      if (params['A'] !== '1') return { exitCode: 99 }
      return { exitCode: index === 0 || isMended ? 0 : index }
    })
  for (const [index, host] of hosts.entries())
    if (index !== 3) serve(await ScriptedAgent.link(server, host), index)
  const first = await startTask(server, idsOf(hosts), {
    strategy: 'SEQUENTIAL',
    maxFailures: 2,
    params: { A: '1' },
    timeout: 77,
    queueSeconds: 0,
  })
  const ended = await finished(server, first)
  t.deepEqual(statusesOf(ended), ['SUCCESS', 'FAILED', 'FAILED', 'UNREACHABLE', 'SKIPPED'])
  await server.data('DELETE', `/api/hosts/${at(hosts, 2).hostId}`)

  const { taskId: second } = await server.data('POST', `/api/tasks/${first}/retry`)
  const again = await finished(server, second)
  t.like(again, { retryOf: first, strategy: 'SEQUENTIAL', timeout: 77, hostCount: 3 })
  t.deepEqual(
    again.results.map(({ hostname, status }) => [hostname, status]),
    [
      ['web2', 'FAILED'],
      ['web4', 'UNREACHABLE'],
      ['web5', 'FAILED'],
    ],
  )

  serve(await ScriptedAgent.link(server, at(hosts, 3)), 3)
  isMended = true
  const { taskId: third } = await server.data('POST', `/api/tasks/${second}/retry`)
  const mended = await finished(server, third)
  t.like(mended, { retryOf: second, status: 'SUCCESS', hostCount: 3 })
  t.is((await server.api('POST', `/api/tasks/${third}/retry`)).status, 409)
  t.true([...starts.values()].every((count) => count === 1))
  t.deepEqual(await finished(server, first), await task(server, first))
})

test('a retry of a running task, or of one without remaining hosts, is a 409', async (t) => {
  const server = await startTestServer(t)
  const [host] = await enrolled(server, 1)
  if (!host) throw new Error('no host')
  const agent = await ScriptedAgent.link(server, host)
  const taskId = await startTask(server, [host.hostId])
  await agent.execution(taskId)
  t.is((await server.api('POST', `/api/tasks/${taskId}/retry`)).status, 409)
  agent.complete(taskId, 1, { lastSequence: -1 })
  await finished(server, taskId)
  await server.data('DELETE', `/api/hosts/${host.hostId}`)
  t.is((await server.api('POST', `/api/tasks/${taskId}/retry`)).status, 409)
})

test('secret parameters of a retry have the same limits', async (t) => {
  const server = await startTestServer(t)
  const [host] = await enrolled(server, 1)
  const taskId = await startTask(server, [host?.hostId ?? 0], { secretParams: { S: 'x' }, queueSeconds: 0 })
  await finished(server, taskId)
  const answer = await server.api('POST', `/api/tasks/${taskId}/retry`, {
    secretParams: { S: 'ü'.repeat(65_536) },
  })
  t.is(answer.status, 400)
  t.is(answer.body.errors?.[0]?.field, 'secretParams.S')
})

test('the error of a script ended by the default timeout says so; with an explicit timeout it does not', async (t) => {
  const server = await startTestServer(t)
  const [host] = await enrolled(server, 1)
  const agent = await ScriptedAgent.link(server, host as Identity, {
    capabilities: { files: true, gates: true },
  })
  const hostIds = idsOf([host as Identity])
  const script = { content: 'true' }
  const ended = async (taskId: string, frame: 'EXECUTE_SCRIPT' | 'FETCH_FILE' = 'EXECUTE_SCRIPT') => {
    await agent.next(frame, (payload) => payload.taskId === taskId)
    agent.complete(taskId, -1, { lastSequence: -1, error: 'pid 7 is left' })
    const { timeout, results } = await finished(server, taskId)
    return [timeout, results[0]?.status, results[0]?.error]
  }
  const told = 'pid 7 is left; 300 s is the default timeout; give a longer one (-u)'
  const first = await startTask(server, hostIds)
  t.deepEqual(await ended(first), [300, 'TIMEOUT', told])
  const { taskId: second } = await server.data('POST', `/api/tasks/${first}/retry`, {})
  t.deepEqual(await ended(second), [300, 'TIMEOUT', told])
  for (const options of [{ timeout: 300 }, { script: { ...script, timeout: 300 } }])
    t.deepEqual(await ended(await startTask(server, hostIds, options)), [300, 'TIMEOUT', 'pid 7 is left'])
  const fetched = await startTask(server, hostIds, { script: undefined, fetch: { path: '/a', kind: 'FILE' } })
  t.is((await ended(fetched, 'FETCH_FILE'))[2], told.replace('300', '3600'))

  const gated = await startTask(server, hostIds, {
    timeout: 300,
    verify: { script },
    rollback: { script: { ...script, timeout: 300 } },
  })
  await agent.execution(gated)
  const timedOut = { status: 'TIMEOUT', exitCode: -1 } as const
  agent.complete(gated, -1, {
    lastSequence: -1,
    status: 'FAILED',
    error: 'verification failed: timed out',
    verify: { ...timedOut, attempts: 1 },
    rollback: timedOut,
  })
  t.is(
    (await finished(server, gated)).results[0]?.error,
    'verification failed: timed out; 300 s is the default timeout; give the verify script a longer one',
  )

  const schedule = { name: 'nightly', cron: '@yearly', script, target: { hostIds } }
  for (const [timeout, error] of [
    [undefined, told.replace('give', 'give its schedule')],
    [300, 'pid 7 is left'],
  ]) {
    const { id } = await server.data('POST', '/api/schedules', { ...schedule, name: `n${timeout}`, timeout })
    const { taskId } = await server.data('POST', `/api/schedules/${id}/run`, {})
    t.deepEqual(await ended(taskId), [300, 'TIMEOUT', error])
  }
})
