import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { entries, finished, startTask, task } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

async function started(t: ExecutionContext, options: { base?: boolean; task?: object } = {}) {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, options.base ? { storeId: null } : {})
  const taskId = await startTask(server, [identity.hostId], { ...options.task })
  await agent.execution(taskId)
  return { server, identity, agent, taskId }
}

test('P22 output that is sent twice is stored once and acknowledged both times', async (t) => {
  const { server, agent, taskId } = await started(t)
  agent.output(taskId, 0, 'a')
  agent.output(taskId, 1, 'b', 'stderr')
  await agent.acknowledged(taskId, 1)
  agent.output(taskId, 0, 'a')
  agent.output(taskId, 1, 'b', 'stderr')
  await agent.acknowledged(taskId, 1)
  agent.output(taskId, 2, 'c')
  agent.complete(taskId, 0, { lastSequence: 2 })
  const ended = await finished(server, taskId)
  t.deepEqual(
    (await entries(server, taskId)).map(({ sequence, data, stream }) => `${sequence}${data}${stream}`),
    ['0astdout', '1bstderr', '2cstdout'],
  )
  t.is(ended.results[0]?.stdoutBytes, 2)
  t.is(ended.results[0]?.stderrBytes, 1)
  t.true(ended.results[0]?.outputComplete)
})

test('P21 output past a gap is neither stored nor acknowledged; once the gap is filled, the rest continues', async (t) => {
  const { server, agent, taskId } = await started(t)
  agent.output(taskId, 0, 'a')
  agent.output(taskId, 2, 'c')
  agent.output(taskId, 3, 'd')
  await agent.acknowledged(taskId, 0)
  await agent.settled()
  t.true(
    agent.heard.every(
      ({ type, payload }) => type !== 'SCRIPT_ACK' || Number('sequence' in payload && payload.sequence) <= 0,
    ),
  )
  for (const [sequence, data] of ['b', 'c', 'd'].entries()) agent.output(taskId, sequence + 1, data)
  agent.complete(taskId, 0, { lastSequence: 3 })
  await agent.released(taskId)
  t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'abcd')
})

test('P24 a result includes whether the script changed anything, if its agent reports it', async (t) => {
  const { server, agent, taskId } = await started(t)
  agent.complete(taskId, 0, { lastSequence: -1, changed: false })
  t.is((await finished(server, taskId)).results[0]?.changed, false)
  t.is((await task(server, taskId)).results[0]?.changed, false)
  const other = await startTask(server, [1])
  await agent.execution(other)
  agent.complete(other, 0, { lastSequence: -1 })
  t.is((await finished(server, other)).results[0]?.changed, null)
})

const lacking = [
  ['no output arrived', { stdoutBytes: 9, lastSequence: -1 }, 'output is missing: 9 of 9 bytes of stdout'],
  [
    'both streams are incomplete',
    { stdoutBytes: 9, stderrBytes: 4, lastSequence: 0 },
    'output is missing: 8 of 9 bytes of stdout, 4 of 4 bytes of stderr',
  ],
  [
    'the agent reports an error as well',
    { stdoutBytes: 2, lastSequence: 0, error: 'it said so' },
    'it said so; output is missing: 1 of 2 bytes of stdout',
  ],
] as const
for (const [what, end, error] of lacking)
  test(`A02 P25 a result with incomplete output says how much is missing: ${what}`, async (t) => {
    const { server, agent, taskId } = await started(t)
    if (end.lastSequence === 0) agent.output(taskId, 0, 'a')
    agent.complete(taskId, 0, end)
    const [result] = (await finished(server, taskId)).results
    t.like(result, { status: 'SUCCESS', outputComplete: false, error })
  })

test('P25 an end that overtakes its output settles once everything up to lastSequence is stored', async (t) => {
  const { server, agent, taskId } = await started(t)
  agent.output(taskId, 0, 'a')
  agent.complete(taskId, 4, { lastSequence: 2 })
  await agent.acknowledged(taskId, 0)
  await agent.settled()
  t.is((await task(server, taskId)).status, 'RUNNING')
  agent.output(taskId, 1, 'b')
  agent.output(taskId, 2, 'c')
  const ended = await finished(server, taskId)
  t.is(ended.results[0]?.exitCode, 4)
  await agent.released(taskId)
  t.is((await entries(server, taskId)).map(({ data }) => data).join(''), 'abc')
})

test('P23 a base-protocol agent may omit sequence numbers, start anywhere and count in microseconds', async (t) => {
  const { server, agent, taskId } = await started(t, { base: true })
  const base = 1_763_000_000_000_000
  for (const [step, data] of ['x', 'y', 'y again', 'z'].entries())
    agent.output(taskId, base + [0, 500, 500, Number.MAX_SAFE_INTEGER - base][step]!, data)
  agent.complete(taskId)
  const ended = await finished(server, taskId)
  t.deepEqual(
    (await entries(server, taskId)).map(({ sequence, data }) => [sequence, data]),
    [
      [base, 'x'],
      [base + 500, 'y'],
      [Number.MAX_SAFE_INTEGER, 'z'],
    ],
  )
  t.true(ended.results[0]?.outputComplete)
  t.false(agent.heard.some(({ type }) => type === 'SCRIPT_ACK'))
})

test('output of many hosts and streams keeps the order of each, with ids that ascend over the task', async (t) => {
  const server = await startTestServer(t)
  const identities = await Promise.all(['a', 'b', 'c'].map((name) => server.enroll(name)))
  const agents = await Promise.all(identities.map((identity) => ScriptedAgent.link(server, identity)))
  const taskId = await startTask(
    server,
    identities.map(({ hostId }) => hostId),
  )
  await Promise.all(
    agents.map(async (agent) => {
      await agent.execution(taskId)
      for (let n = 0; n < 100; n++) agent.output(taskId, n, `${n};`, n % 3 ? 'stdout' : 'stderr')
      agent.complete(taskId, 0, { lastSequence: 99 })
    }),
  )
  await finished(server, taskId)
  const all = await entries(server, taskId)
  t.is(all.length, 300)
  t.true(all.every(({ id }, at) => at === 0 || id > (all[at - 1]?.id ?? 0)))
  const whole = Array.from({ length: 100 }, (_, n) => `${n};`).join('')
  for (const { hostId } of identities)
    t.is(
      all
        .filter((entry) => entry.hostId === hostId)
        .map(({ data }) => data)
        .join(''),
      whole,
    )
})

test('output far past maxOutputBytes is cut, marked as truncated, and delays nothing', async (t) => {
  const { server, agent, taskId } = await started(t, { base: true, task: { maxOutputBytes: 1024 } })
  for (let n = 0; n < 20; n++) agent.output(taskId, n, 'x'.repeat(100_000))
  agent.complete(taskId)
  const ended = await finished(server, taskId)
  t.true(ended.results[0]?.truncated)
  t.is(ended.results[0]?.stdoutBytes, 2_000_000)
  const kept = (await entries(server, taskId)).reduce((sum, { data }) => sum + data.length, 0)
  t.true(kept > 1024 && kept < 400_000, `${kept} bytes are kept`)
})

test('S10 empty output counts too: past the bound it is acknowledged but not stored, even after a restart', async (t) => {
  const { server, identity, agent, taskId } = await started(t, { task: { maxOutputBytes: 1024 } })
  for (let n = 0; n < 12_000; n++) agent.output(taskId, n, '')
  await agent.acknowledged(taskId, 11_999)
  const kept = (await entries(server, taskId)).length
  t.true(kept < 9000, `${kept} entries`)
  t.true((await task(server, taskId)).results[0]?.truncated)
  await server.restart()
  const back = await ScriptedAgent.link(server, identity, {
    tasks: [{ taskId, state: 'RUNNING', lastSequence: 11_999 }],
  })
  back.output(taskId, 12_000, 'more')
  await back.acknowledged(taskId, 12_000)
  back.complete(taskId, 0, { lastSequence: 12_003, stdoutBytes: 4 })
  const [result] = (await finished(server, taskId)).results
  t.like(result, { status: 'SUCCESS', truncated: true })
  t.is((await entries(server, taskId)).length, kept)
})

test('output that is not UTF-8 is not cut although it is three times as long on the wire', async (t) => {
  const { server, agent, taskId } = await started(t, { task: { maxOutputBytes: 200_000 } })
  for (let n = 0; n < 4; n++) agent.output(taskId, n, '\uFFFD'.repeat(50_000))
  agent.complete(taskId, 0, { lastSequence: 3, stdoutBytes: 200_000, truncated: false })
  const ended = await finished(server, taskId)
  t.false(ended.results[0]?.truncated)
  t.is((await entries(server, taskId)).map(({ data }) => data).join(''), '\uFFFD'.repeat(200_000))
})

for (const [exitCode, status, end, error] of [
  [9, 'SUCCESS', 'FAILED', 'its agent says SUCCESS with exit code 9'],
  [0, 'TIMEOUT', 'FAILED', 'its agent says TIMEOUT with exit code 0'],
  [0, 'CANCELLED', 'FAILED', 'its agent says CANCELLED with exit code 0, although it was not cancelled'],
  [0, 'FAILED', 'FAILED', 'its agent says FAILED with exit code 0'],
  [-1, 'SUCCESS', 'TIMEOUT', 'its agent says SUCCESS with exit code -1'],
  [0, 'SUCCESS', 'SUCCESS', null],
] as const)
  test(`P24 exit code ${exitCode} reported as ${status} is ${end}`, async (t) => {
    const { server, agent, taskId } = await started(t, { task: { timeout: 60 } })
    agent.complete(taskId, exitCode, { status, lastSequence: -1 })
    t.like((await finished(server, taskId)).results[0], { status: end, exitCode, error })
  })

test('the error text of an agent is kept as one line without control characters', async (t) => {
  const { server, agent, taskId } = await started(t)
  agent.complete(taskId, 1, {
    lastSequence: -1,
    error: 'over\r\nthere \u001b[2J\u202egnp',
    survivors: [{ pid: 7, command: 'a\u0007\u2066b' }],
  })
  const [result] = (await finished(server, taskId)).results
  t.is(result?.error, 'over there \ufffd[2J\ufffdgnp')
  t.deepEqual(result?.survivors, [{ pid: 7, command: 'a\ufffd\ufffdb' }])
})

test('A07 survivors are null if an agent with containment cannot list them, and empty if none are reported', async (t) => {
  const { server, agent, taskId } = await started(t, { task: { timeout: 60 } })
  const error = 'processes that left their parents are not known'
  agent.complete(taskId, -1, { lastSequence: -1, containment: 'process-group', error })
  const unknown = await finished(server, taskId)
  t.like(unknown.results[0], { survivors: null, error, containment: 'process-group' })
  await server.restart()
  t.is((await server.data('GET', `/api/tasks/${taskId}`)).results[0].survivors, null)
  const older = await started(t)
  older.agent.complete(older.taskId, 0, { lastSequence: -1 })
  t.deepEqual((await finished(older.server, older.taskId)).results[0]?.survivors, [])
})

test('implausible start and end times are replaced by those of the server, and no duration is negative', async (t) => {
  const { server, agent, taskId } = await started(t)
  agent.complete(taskId, 0, {
    lastSequence: -1,
    duration: -5,
    startedAt: '1970-01-01T00:00:00.000Z',
    completedAt: 'tomorrow',
  })
  const [result] = (await finished(server, taskId)).results
  t.is(result?.duration, 0)
  t.true(Math.abs(Date.parse(result?.startedAt ?? '') - Date.now()) < 30_000)
  t.true(Date.parse(result?.completedAt ?? '') >= Date.parse(result?.startedAt ?? ''))
})

for (const [exitCode, status, signal] of [
  [0, 'SUCCESS', null],
  [1, 'FAILED', null],
  [126, 'FAILED', null],
  [137, 'FAILED', 'SIGKILL'],
  [-1, 'TIMEOUT', null],
] as const)
  test(`P24 exit code ${exitCode} is ${status}`, async (t) => {
    const { server, agent, taskId } = await started(t)
    agent.complete(taskId, exitCode, { lastSequence: -1 })
    const [result] = (await finished(server, taskId)).results
    t.is(result?.status, status)
    t.is(result?.exitCode, exitCode)
    t.is(result?.signal, signal)
  })
