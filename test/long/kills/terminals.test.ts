import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, recordingOf, withTerminals } from '../../helpers/terminals/terminals.ts'

const piece = (sequence: number) => `${sequence} ${'\u001b[31mé🙂\r\n'.repeat(sequence % 300)}`
const upTo = (last: number) => Array.from({ length: last + 1 }, (_, sequence) => piece(sequence)).join('')

test('F20 a session survives kill -9 of the server during output: nothing is missing or repeated, and its recording is complete', async (t) => {
  const server = await startServerProcess(t)
  const identity = await server.enroll('web1')
  const first = await ScriptedAgent.link(server, identity, withTerminals)
  const { sessionId } = await openTerminal(server, first, identity.hostId)
  let agent = first
  let [text, shown, sent] = ['', -1, -1]
  for (let round = 0; round < 4; round++) {
    const client = await ScriptedTerminal.attach(server, sessionId, { query: `after=${shown}` })
    t.is((await client.next('TERMINAL_ATTACHED')).omitted, 0)
    client.send('TERMINAL_RESIZE', { cols: 100 + round, rows: 30 })
    await agent.next('TERMINAL_RESIZE')
    for (let n = 0; n < 120; n++)
      agent.send('TERMINAL_OUTPUT', { sessionId, data: piece(++sent), sequence: sent })
    await client.has(shown + 20 + 25 * round)
    await server.kill()
    await client.closed
    text += client.text
    shown = client.last
    await server.start()
    const terminals = [{ sessionId, lastSequence: sent }]
    agent = await ScriptedAgent.link(server, identity, { ...withTerminals, terminals })
    const { after = -2 } = await agent.next('TERMINAL_OPEN')
    t.true(after >= -1 && after <= sent)
    agent.send('TERMINAL_OPENED', { sessionId })
    for (let sequence = after + 1; sequence <= sent; sequence++)
      agent.send('TERMINAL_OUTPUT', { sessionId, data: piece(sequence), sequence })
  }
  const client = await ScriptedTerminal.attach(server, sessionId, { query: `after=${shown}` })
  agent.send('TERMINAL_CLOSED', { sessionId, exitCode: 0, signal: null, reason: null })
  t.is((await client.next('TERMINAL_CLOSED')).exitCode, 0)
  t.true(text + client.text === upTo(sent))
  await agent.next('TERMINAL_CLOSE')
  const { output, events } = await recordingOf(server, sessionId)
  t.true(output === upTo(sent))
  // A resize may have been in transit when the server was killed.
  const sizes = events.filter(([code]) => code === 'r').map(([, size]) => size)
  t.deepEqual(sizes, [...new Set(sizes)].sort())
  t.true(sizes.length >= 2)
  const directory = join(server.dataDir, 'terminals')
  for (const name of await readdir(directory)) t.is((await stat(join(directory, name))).mode & 0o777, 0o600)
})

test('F20 after kill -9 of the server a shell that its agent lost meanwhile ends with a reason', async (t) => {
  const server = await startServerProcess(t)
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  const { sessionId } = await openTerminal(server, agent, identity.hostId)
  const before = await ScriptedTerminal.attach(server, sessionId)
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'kept', sequence: 0 })
  await before.shows('kept')
  await agent.next('TERMINAL_ACK', ({ sequence }) => sequence === 0)
  await server.kill()
  await server.start()
  const client = await ScriptedTerminal.attach(server, sessionId)
  await client.shows('kept')
  await ScriptedAgent.link(server, identity, withTerminals)
  t.regex((await client.next('TERMINAL_CLOSED')).reason ?? '', /restarted/)
  t.is((await recordingOf(server, sessionId)).output, 'kept')
})
