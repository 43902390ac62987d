import { existsSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { badValues, type Kind, textOf, withField } from '../../helpers/faults/bad-fields.ts'

/** Every message of a server: a valid payload, and the kind of each of its fields. */
const messages: Record<string, { good: object; fields: Record<string, Kind> }> = {
  EXECUTE_SCRIPT: {
    good: {
      taskId: 't1',
      script: 'true',
      timeout: 60,
      params: { A: '1' },
      workDir: '/tmp',
      scriptType: 'BASH',

      runAs: 'nobody',
      maxOutputBytes: 1024,
      expiry: 'x',
      signature: 'x',
      keyId: 'x',
      linkId: 'x',
    },
    fields: {
      taskId: 'id',
      script: 'text',
      timeout: 'number',
      params: 'map',
      'params.A': 'text',
      workDir: 'optionalText',
      scriptType: 'type',
      runAs: 'optionalText',
      maxOutputBytes: 'count',
      expiry: 'optionalText',
      signature: 'optionalText',
      keyId: 'optionalText',
      linkId: 'optionalText',
      limits: 'limits',
    },
  },
  SCRIPT_ACK: {
    good: { taskId: 't1', sequence: 0, complete: true },
    fields: { taskId: 'id', sequence: 'optionalLast' },
  },
  CANCEL_SCRIPT: { good: { taskId: 't1' }, fields: { taskId: 'id' } },
  TERMINAL_OPEN: {
    good: { sessionId: 's1', cols: 80, rows: 24, after: 0, expiry: 'x', signature: 'x', keyId: 'x' },
    fields: {
      sessionId: 'id',
      cols: 'size',
      rows: 'size',
      runAs: 'optionalText',
      shell: 'optionalText',
      term: 'optionalText',
      command: 'optionalText',
      after: 'optionalLast',
      expiry: 'optionalText',
      signature: 'optionalText',
      keyId: 'optionalText',
      linkId: 'optionalText',
    },
  },
  TERMINAL_INPUT: { good: { sessionId: 's1', data: 'x' }, fields: { sessionId: 'id', data: 'text' } },
  TERMINAL_ACK: { good: { sessionId: 's1', sequence: 0 }, fields: { sessionId: 'id', sequence: 'last' } },
  TERMINAL_RESIZE: {
    good: { sessionId: 's1', cols: 80, rows: 24 },
    fields: { sessionId: 'id', cols: 'size', rows: 'size' },
  },
  TERMINAL_CLOSE: { good: { sessionId: 's1' }, fields: { sessionId: 'id' } },
}

test("P31 each field of a server's messages that is missing, of a wrong type or out of range is ERROR 400", async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const running = `while [ ! -e ${dataDir}/go ]; do sleep 0.05; done; echo end`
  server.execute(agent.agentId, { taskId: 't1', script: running })
  const cases = Object.entries(messages).flatMap(([type, { good, fields }]) =>
    Object.entries({ ...fields }).flatMap(([path, kind]) =>
      badValues[kind]
        // An absent `params` member is valid, and the runner judges an empty or unusual name of one.
        .filter((value) => !(path === 'params.A' && typeof value === 'symbol'))
        .map((value) => ({ type, path, payload: withField(good, path, value) })),
    ),
  )
  for (const [n, { type, payload }] of cases.entries())
    server.sendText(textOf({ type, id: `bad-${n}`, timestamp: '', payload }))
  server.sendText(JSON.stringify({ type: 'NOSUCH', id: 'end', timestamp: '', payload: {} }))
  await server.until(() => server.errors.some(({ refId }) => refId === 'end'), 'all frames have a response')
  for (const [n, { type, path, payload }] of cases.entries()) {
    const error = server.errors.find(({ refId }) => refId === `bad-${n}`)
    const what = `${type} ${path} ${JSON.stringify(payload).slice(0, 200)}`
    t.is(error?.code, 400, what)
    t.true((error?.message.length ?? 9999) <= 1000, what)
  }
  t.is(server.errors.length, cases.length + 1)
  t.true(agent.linked())
  server.execute(agent.agentId, { taskId: 'go', script: `touch ${dataDir}/go` })
  t.like(await server.completed('t1'), { status: 'SUCCESS', exitCode: 0 })
  t.is(server.text('t1'), 'end\n')
})

for (const [what, data] of [
  ['a binary frame', Buffer.from('{}')],
  ['text that is not JSON', '{"type":'],
  ['JSON that is not an object', '[]'],
  ['a frame without type', '{"id":"1"}'],
  ['a frame without id', '{"type":"SCRIPT_ACK"}'],
] as const)
  test(`P32 ${what} from a server closes the link with 4400; the agent links again and works`, async (t) => {
    const { server, agent } = await linkedAgent(t)
    const { socket } = server
    const closed = new Promise<number>((resolve) => {
      socket?.once('close', resolve)
    })
    socket?.send(data, { binary: typeof data !== 'string' })
    t.is(await closed, 4400)
    await server.linked(2)
    server.execute(agent.agentId, { taskId: 'next', script: 'echo on' })
    t.is((await server.completed('next')).status, 'SUCCESS')
  })

test('P33 a frame of a server may have 8 MiB; a larger one closes the link with 1009, and the agent links again', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const mebibyte = 1024 * 1024
  server.execute(agent.agentId, { taskId: 'large', script: `echo on #${'x'.repeat(7 * mebibyte)}` })
  t.is((await server.completed('large')).status, 'SUCCESS')
  const { socket } = server
  const closed = new Promise<number>((resolve) => {
    socket?.once('close', resolve)
  })
  server.sendText(JSON.stringify({ type: 'X', id: '1', payload: 'x'.repeat(8 * mebibyte) }))
  t.is(await closed, 1009)
  await server.linked(2)
  server.execute(agent.agentId, { taskId: 'next', script: 'echo on' })
  t.is((await server.completed('next')).status, 'SUCCESS')
})

test('P22 P26 acknowledgements of unsent output, lower ones, and ends of running scripts lose nothing', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  server.acksOutput = false
  const script = `echo one; while [ ! -e ${dataDir}/go ]; do sleep 0.05; done; echo two; exit 3`
  server.execute(agent.agentId, { taskId: 'acks', script })
  await server.until(() => server.text('acks') === 'one\n', 'the first output arrives')
  const acks: object[] = [
    { sequence: 2 ** 53 - 1 },
    { sequence: 1 },
    { sequence: -1 },
    { sequence: 0 },
    { sequence: -1 },
    {},
    { complete: true },
    { sequence: 0, complete: true },
  ]
  for (const ack of acks) server.send('SCRIPT_ACK', { taskId: 'acks', ...ack })
  for (const taskId of ['nosuch', '__proto__', 'constructor'])
    for (const ack of acks) server.send('SCRIPT_ACK', { taskId, ...ack })
  server.acksOutput = true
  server.acksComplete = false
  server.execute(agent.agentId, { taskId: 'go', script: `touch ${dataDir}/go` })
  t.like(await server.completed('acks'), { status: 'FAILED', exitCode: 3, lastSequence: 1 })
  t.is(server.text('acks'), 'one\ntwo\n')
  server.socket?.terminate()
  await server.linked(2)
  const named = server.hellos.at(-1)?.tasks.map(({ taskId }) => taskId)
  t.true(named?.includes('acks'), 'an end is kept until it is acknowledged as an end')
})

test("an error that quotes a long path is cut to the protocol's limit, and the execution ends", async (t) => {
  const { server, agent } = await linkedAgent(t)
  const workDir = `/${'x'.repeat(4095)}`
  server.execute(agent.agentId, { taskId: 'long', script: 'true', workDir })
  const complete = await server.completed('long')
  t.is(complete.exitCode, 126)
  t.is(complete.error?.length, 4096)
})

test('endless cancels of unknown tasks are bounded, and the next task still runs', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  for (let n = 0; n < 12_000; n++) server.send('CANCEL_SCRIPT', { taskId: `never-${n}` })
  server.execute(agent.agentId, { taskId: 'after', script: `touch ${dataDir}/ran` })
  t.is((await server.completed('after')).status, 'SUCCESS')
  t.true(existsSync(join(dataDir, 'ran')))
})
