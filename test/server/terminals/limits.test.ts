import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { ServerOptions } from '../../../src/server/app/options.ts'
import { createTerminalRetention } from '../../../src/server/terminals/retention.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { believed } from '../../helpers/faults/believed-clock.ts'
import { ShiftedClock } from '../../helpers/faults/shifted-clock.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { startInsides } from '../../helpers/servers/services.ts'
import { terminal } from '../../helpers/servers/store-records.ts'
import { ScriptedTerminal } from '../../helpers/terminals/terminal-client.ts'
import { openTerminal, recordingOf, withTerminals } from '../../helpers/terminals/terminals.ts'
import { until } from '../../helpers/until.ts'

async function start(t: ExecutionContext, options: Partial<ServerOptions> = {}) {
  const clock = new ShiftedClock()
  const server = await startTestServer(t, { clock, ...options })
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  const reasonOf = async (sessionId: string): Promise<string> => {
    const session = () => server.data('GET', `/api/terminals/${sessionId}`)
    await until('the end', async () => (await session()).status === 'CLOSED')
    return (await session()).reason
  }
  return { clock, server, identity, agent, hostId: identity.hostId, reasonOf }
}

test('P40 F20 a session ends if its client or agent is gone for 60 s, and continues if it returns in time', async (t) => {
  const { clock, server, agent, hostId, reasonOf } = await start(t)
  const never = await openTerminal(server, agent, hostId)
  const { sessionId } = await openTerminal(server, agent, hostId)
  const client = await ScriptedTerminal.attach(server, sessionId)
  await client.next('TERMINAL_ATTACHED')
  clock.forward(61)
  t.regex(await reasonOf(never.sessionId), /client did not come back within 60 s/)
  t.is((await agent.next('TERMINAL_CLOSE')).sessionId, never.sessionId)
  t.is((await server.data('GET', `/api/terminals/${sessionId}`)).status, 'OPEN')
  await agent.cut()
  await client.next('TERMINAL_NOTICE')
  clock.forward(61)
  t.regex((await client.next('TERMINAL_CLOSED')).reason ?? '', /agent did not come back/)
})

test('P40 the idle limit ends only a session without input or output; typing keeps the login in use', async (t) => {
  const { clock, server, agent, hostId } = await start(t, { terminalIdleLimit: 21_600 })
  const { sessionId } = await openTerminal(server, agent, hostId)
  const client = await ScriptedTerminal.attach(server, sessionId)
  const journal = async () => {
    const directory = join(server.dataDir, 'store')
    const names = (await readdir(directory)).filter((name) => name.startsWith('journal'))
    const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size))
    return sizes.reduce((sum, size) => sum + size, 0)
  }
  // A login expires 12 h after its last use.
  for (let hours = 0; hours < 15; hours += 5) {
    clock.forward(5 * 3600)
    const before = await journal()
    client.type('x')
    await until('a record of its use', async () => (await journal()) > before)
  }
  clock.forward(21_601)
  t.regex((await client.next('TERMINAL_CLOSED')).reason ?? '', /nothing was typed or shown for 21600 s/)
  t.is((await server.api('GET', '/api/auth/me')).status, 200)
})

test('P42 F20 after a restart a client may have more than the server, but never more than the agent', async (t) => {
  const { server, identity, agent, hostId } = await start(t, { recordTerminals: false })
  const { sessionId } = await openTerminal(server, agent, hostId)
  await server.restart()
  const attach = (after: number) =>
    ScriptedTerminal.attach(server, sessionId, { query: `after=${after}`, acknowledges: false })
  // The server does not know yet how much output there is.
  const early = await attach(9e15)
  const terminals = [{ sessionId, lastSequence: 3 }]
  const again = await ScriptedAgent.link(server, identity, { ...withTerminals, terminals })
  t.is((await again.next('TERMINAL_OPEN')).after, -1)
  again.send('TERMINAL_OPENED', { sessionId })
  for (let sequence = 2; sequence < 5; sequence++)
    again.send('TERMINAL_OUTPUT', { sessionId, data: String(sequence), sequence })
  await early.shows('4')
  t.is(early.text, '4')
  await again.settled()
  t.true(again.heard.every(({ type, payload }) => type !== 'TERMINAL_ACK' || payload.sequence < 4))
  await t.throwsAsync(attach(5), { message: /400: after/ })
  const back = await attach(2)
  await back.shows('34')
  t.is(back.text, '34')
})

test('a server with recording switched off reports it; one that cannot record opens no session', async (t) => {
  const { server, agent, hostId } = await start(t, { recordTerminals: false })
  const { sessionId } = await openTerminal(server, agent, hostId)
  const client = await ScriptedTerminal.attach(server, sessionId)
  t.false((await client.next('TERMINAL_ATTACHED')).recorded)
  agent.send('TERMINAL_OUTPUT', { sessionId, data: 'x', sequence: 0 })
  await agent.next('TERMINAL_ACK')
  t.is((await server.api('GET', `/api/terminals/${sessionId}/recording`)).status, 404)
  t.deepEqual(await readdir(join(server.dataDir, 'terminals')), [])

  const other = await start(t)
  await rm(join(other.server.dataDir, 'terminals'), { recursive: true })
  const asked = await other.server.api('POST', '/api/terminals', { hostId: other.hostId, cols: 80, rows: 24 })
  t.is(asked.status, 503)
  t.is((await other.server.data('GET', '/api/terminals')).totalElements, 0)
})

test('users and hosts are limited to their maximum of open terminals', async (t) => {
  const { server, agent, hostId } = await start(t)
  agent.serveTerminals()
  const ask = () => server.api('POST', '/api/terminals', { hostId, cols: 80, rows: 24 })
  const answers = await Promise.all(Array.from({ length: 52 }, ask))
  t.is(answers.filter(({ status }) => status === 201).length, 50)
  t.regex(answers.find(({ status }) => status === 409)?.body.message ?? '', /50 terminals open/)
  const { content } = await server.data('GET', '/api/terminals?status=OPEN&size=500')
  t.is(content.length, 50)
  t.deepEqual(
    content.map(({ sessionId }: { sessionId: string }) => sessionId),
    content
      .map(({ sessionId }: { sessionId: string }) => sessionId)
      .toSorted()
      .toReversed(),
  )
  await server.data('DELETE', `/api/terminals/${content[0].sessionId}`)
  t.is((await ask()).status, 201)
})

test('A04 retention removes old ended sessions with their recordings, keeps all others, and moves orphaned recordings aside', async (t) => {
  const { context, directory: dataDirectory } = await startInsides(t)
  const { store, recordings: directory, clock } = context
  const old = new Date(clock.now() - 91 * 24 * 3600_000).toISOString()
  const young = new Date(clock.now() - 89 * 24 * 3600_000).toISOString()
  const record = (id: string, endedAt: string | null) =>
    terminal(id, { status: endedAt === null ? 'OPEN' : 'CLOSED', startedAt: old, endedAt })
  const ends = { old, young, open: null }
  await store.transact((tx) => {
    for (const [id, endedAt] of Object.entries(ends)) tx.put('terminals', record(id, endedAt))
  })
  for (const id of [...Object.keys(ends), 'unborn']) {
    const recording = await directory.create(id, Buffer.from('{}\n'), (error) => t.fail(String(error)))
    await recording.end()
  }
  t.is(await createTerminalRetention({ ...context, days: 0 }).sweep(), 0)
  t.is(await createTerminalRetention({ ...context, days: 90 }).sweep(), 1)
  t.deepEqual(
    (await store.query('terminals')).items.map(({ id }) => id),
    ['open', 'young'],
  )
  t.deepEqual((await directory.list()).map(({ id }) => id).sort(), ['open', 'unborn', 'young'])
  const late = () => clock.now() + 2 * 24 * 3600_000
  await createTerminalRetention({ ...context, agreed: believed(late), days: 0 }).sweep()
  t.deepEqual((await directory.list()).map(({ id }) => id).sort(), ['open', 'young'])
  const aside = join(dataDirectory, 'terminals', 'orphaned')
  const [folder = ''] = await readdir(aside)
  t.deepEqual((await readdir(join(aside, folder))).toSorted(), ['unborn.cast', 'unborn.cast.sums'])
  const later = () => clock.now() + 93 * 24 * 3600_000
  await createTerminalRetention({ ...context, agreed: believed(later), days: 90 }).sweep()
  t.deepEqual(await readdir(aside), [])
  await t.throwsAsync(directory.read('old'), { code: 'gone' })
})

for (const continuesUnrecorded of [false, true])
  test(`P46 a session whose recording is full ${continuesUnrecorded ? 'continues if the server allows it' : 'ends, and shows nothing more'}, after a warning to its user`, async (t) => {
    const { server, agent, hostId, reasonOf } = await start(t, {
      recordingBound: { maxBytes: 2000, continuesUnrecorded },
    })
    const { sessionId } = await openTerminal(server, agent, hostId)
    const client = await ScriptedTerminal.attach(server, sessionId)
    await client.next('TERMINAL_ATTACHED')
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'x'.repeat(1750), sequence: 0 })
    const then = continuesUnrecorded ? /continues unrecorded when it is full/ : /ends when it is full/
    const warning = await client.next('TERMINAL_NOTICE')
    t.is(warning.kind, 'recording-full')
    t.regex(warning.message, then)
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'y'.repeat(300), sequence: 1 })
    agent.send('TERMINAL_OUTPUT', { sessionId, data: 'DEED SHOWN', sequence: 2 })
    if (continuesUnrecorded) await client.shows('DEED SHOWN')
    else {
      t.regex(await reasonOf(sessionId), /^its recording is full/)
      t.is((await agent.next('TERMINAL_CLOSE')).sessionId, sessionId)
      t.regex((await client.next('TERMINAL_CLOSED')).reason ?? '', /unrecorded sessions are not allowed/)
      t.is(client.text, 'x'.repeat(1750))
    }
    const recorded = continuesUnrecorded
      ? /^x{1750}\r\n\[rsm: the recording is full; the session continued unrecorded\]/
      : /^x{1750}\r\n\[rsm: .* ended\]/
    await until('its recording', async () => recorded.test((await recordingOf(server, sessionId)).output))
    const full = async () => (await server.data('GET', '/api/audit?action=terminal.full')).content
    await until('its entry', async () => (await full()).length > 0)
    t.like(await full(), { length: 1, 0: { object: { id: sessionId }, detail: { hostId, user: 'admin' } } })
  })
