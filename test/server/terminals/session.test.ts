import test, { type ExecutionContext } from 'ava'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'
import { ScriptedTerminal } from '../../helpers/terminal-client.ts'

const terminal = { terminal: true }

async function start(t: ExecutionContext) {
  const server = await startTestServer(t)
  const identity = await server.enrol('web1')
  const agent = await ScriptedAgent.link(server, identity, { capabilities: terminal })
  return { server, identity, agent }
}

/** Opens a session whose agent answers; the agent's frame is answered too. */
async function open(server: TestServer, agent: ScriptedAgent, hostId: number, more: object = {}) {
  const asked = server.data('POST', '/api/terminals', { hostId, cols: 80, rows: 24, ...more })
  const frame = await agent.next('TERMINAL_OPEN')
  agent.send('TERMINAL_OPENED', { sessionId: frame.sessionId })
  return { frame, created: await asked }
}

test('P39 a session from its opening to the end of its shell', async (t) => {
  const { server, identity, agent } = await start(t)
  const { hostId } = identity
  const { frame, created } = await open(server, agent, hostId, { term: 'xterm', command: 'true' })
  const { sessionId } = created
  t.like(frame, { sessionId, cols: 80, rows: 24, term: 'xterm', command: 'true' })
  t.truthy(frame.signature)
  t.is(created.path, `/ws/terminal/${sessionId}`)
  const client = await ScriptedTerminal.attach(server, sessionId)
  t.like(await client.next('TERMINAL_ATTACHED'), { hostname: 'web1', after: -1, omitted: 0, recorded: true })
  client.type('ls\r')
  t.is((await agent.next('TERMINAL_INPUT')).data, 'ls\r')
  client.send('TERMINAL_RESIZE', { cols: 100, rows: 30 })
  t.like(await agent.next('TERMINAL_RESIZE'), { cols: 100, rows: 30 })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'a ü\r\n', sequence: 0 })
  agent.send('TERMINAL_OUTPUT', { sessionId, data: '$ ', sequence: 1 })
  await client.shows('a ü\r\n$ ')
  await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 1)
  t.like(await server.data('GET', `/api/terminals/${sessionId}`), { status: 'OPEN', cols: 100, rows: 30 })
  agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 3, signal: null, reason: null })
  t.like(await client.next('TERMINAL_CLOSED'), { exitCode: 3, signal: null, reason: null })
  t.is((await client.closed).code, 1000)
  await agent.next('TERMINAL_CLOSE')
  t.like(await server.data('GET', `/api/terminals/${sessionId}`), { status: 'CLOSED', exitCode: 3 })
  const { body } = await server.api('GET', `/api/terminals/${sessionId}/recording`)
  const lines = (body.data as string)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  t.like(lines[0], { version: 2, width: 80, height: 24 })
  t.deepEqual(
    lines.slice(1).map(([, code, data]) => [code, data]),
    [
      ['r', '100x30'],
      ['o', 'a ü\r\n'],
      ['o', '$ '],
    ],
  )
})
