import { existsSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { type Clock, systemClock } from '../../../src/agent/clock.ts'
import { isDistrust } from '../../../src/core/protocol/orders.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import type { FakeServer } from '../../helpers/servers/fake-server.ts'
import { LiveTerminal } from '../../helpers/terminals/terminal-session.ts'

async function relink(server: FakeServer): Promise<void> {
  const count = server.hellos.length
  server.socket?.terminate()
  await server.linked(count + 1)
}

/** Waits until the shell has processed all input. */
async function settled(session: LiveTerminal, word: string): Promise<string> {
  session.type(`echo "${word}-$((1 + 1))"\n`)
  return session.shows(new RegExp(`${word}-2\\r\\n`))
}

test('F20 a link that drops during output and returns misses nothing and repeats nothing', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.acksTerminals = false
  const session = await new LiveTerminal(server, agent.agentId).open()
  session.type('stty -echo; i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo "line $i"; done; echo all-done\n')
  let after = -1
  for (const wanted of ['line 20\r', 'line 700\r', 'line 1500\r']) {
    await session.shows(new RegExp(wanted))
    after = Math.max(...session.frames().map(({ sequence }) => sequence ?? -1))
    await relink(server)
    const [named] = server.hellos.at(-1)?.terminals ?? []
    t.is(named?.sessionId, session.sessionId)
    t.true((named?.lastSequence ?? -1) >= after)
    const seen = session.frames().length
    await session.open({ after })
    await server.until(
      () => session.frames().length > seen || session.text().includes('all-done\r'),
      'output continues',
    )
    const next = session.frames()[seen]
    if (next) t.is(next.sequence, after + 1, 'the first new frame follows the last old one')
  }
  const text = await session.shows(/all-done\r\n/)
  const lines = text.match(/line \d+(?=\r)/g) ?? []
  t.deepEqual(
    lines,
    Array.from({ length: 2000 }, (_, at) => `line ${at + 1}`),
  )
})

test('F20 a session that ended while the link was down delivers its output and its end once it is resumed', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const session = await new LiveTerminal(server, agent.agentId).open()
  session.type(`until [ -e ${dataDir}/gate ]; do sleep 0.05; done; echo fare-$((1 + 1))-well; exit 9\n`)
  await session.shows(/well; exit 9/)
  await relink(server)
  const { writeFileSync } = await import('node:fs')
  writeFileSync(join(dataDir, 'gate'), '')
  const after = Math.max(...session.frames().map(({ sequence }) => sequence ?? -1))
  await session.open({ after })
  t.like(await session.ended(), { exitCode: 9, reason: null })
  t.regex(session.text(), /fare-2-well/)
  await relink(server)
  t.is(server.hellos.at(-1)?.terminals?.length, 1, 'the end may be lost with the link')
  await session.open({ after: 1000 })
  t.is(session.ends().length, 2)
  session.close()
  await relink(server)
  t.deepEqual(server.hellos.at(-1)?.terminals, [], 'a session is dropped once its end is acknowledged')
})

test('S05 a link that has not signed for a session cannot type into it, or open one with captured messages', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const evil = join(dataDir, 'evil')
  const session = new LiveTerminal(server, agent.agentId)
  const captured = server.terminalOpen(agent.agentId, { sessionId: session.sessionId })
  server.send('TERMINAL_OPEN', captured)
  await server.until(
    () => server.messages.some(({ type }) => type === 'TERMINAL_OPENED'),
    'the session is open',
  )
  t.regex(await settled(session, 'first'), /first-2/)
  await relink(server)
  const seen = session.frames().length
  session.type(`touch ${evil}\n`)
  session.resize(40, 10)
  session.acknowledge(1_000_000)
  server.send('TERMINAL_OPEN', captured)
  t.regex((await session.ended()).reason ?? '', /^signature is for another link/)
  const { linkId: _, ...unbound } = captured
  server.send('TERMINAL_OPEN', { ...unbound, sessionId: 'another', shell: 'bash' })
  await server.until(
    () => server.messages.some(({ payload }) => 'reason' in payload && payload.sessionId === 'another'),
    'the session is refused',
  )
  t.is(session.frames().length, seen, 'an untrusted link gets no output')
  await session.open({ after: seen - 1 })
  session.type('stty size\n')
  t.regex(await settled(session, 'second'), /24 80\r\n/)
  t.false(existsSync(evil))
  await relink(server)
  await server.until(() => server.errors.length >= 3, 'the server receives the errors over the next link')
  const told = server.errors.map(({ message }) => message)
  t.true(told.every(isDistrust), told.join('\n'))
  t.true(told.some((message) => message.includes(`TERMINAL_INPUT ${session.sessionId}`)))
  t.true(told.some((message) => message.includes('TERMINAL_OPEN another')))
  await session.open({ after: 0 })
  session.close()
})

test('an id opens one session only, however often its message arrives', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const session = new LiveTerminal(server, agent.agentId)
  const open = server.terminalOpen(agent.agentId, { sessionId: session.sessionId })
  for (let times = 0; times < 3; times += 1) server.send('TERMINAL_OPEN', open)
  await server.until(
    () => server.messages.some(({ type }) => type === 'TERMINAL_OPENED'),
    'the session is open',
  )
  session.type('echo "pid-$$-"\n')
  await session.shows(/pid-\d+-/)
  server.send('TERMINAL_OPEN', open)
  session.type('exit\n')
  await session.ended()
  session.close()
  server.send('TERMINAL_OPEN', open)
  await server.until(() => session.ends().length > 1, 'the session is refused')
  t.is(session.ends()[1]?.reason, 'the session has ended')
  t.is(new Set(session.text().match(/pid-\d+-/g)).size, 1)
})

test('a session that no link resumes ends automatically', async (t) => {
  let ahead = 0
  const waiting = new Set<{ at: number; run: () => void }>()
  const clock: Clock = {
    ...systemClock,
    after(delay, run) {
      if (delay !== 75_000) return systemClock.after(delay, run)
      const entry = { at: ahead, run }
      waiting.add(entry)
      return () => waiting.delete(entry)
    },
  }
  const { server, agent } = await linkedAgent(t, { clock })
  const session = await new LiveTerminal(server, agent.agentId).open()
  t.is(waiting.size, 0)
  await relink(server)
  t.is(waiting.size, 1, 'the session waits for its server')
  ahead = 75_000
  for (const { run } of waiting) run()
  await relink(server)
  await session.open({ after: 0 })
  t.is((await session.ended()).reason, 'the server did not resume the session')
})

test('F13 input is kept while the agent asks a server whose clock was set back for its time', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const session = await new LiveTerminal(server, agent.agentId).open()
  await settled(session, 'first')
  const after = Math.max(...session.frames().map(({ sequence }) => sequence ?? -1))
  await relink(server)
  // A heartbeat of the new link has synchronised the time, which the step below makes wrong.
  await server.until(() => server.heartbeats.length >= 2, 'the time is synchronised')
  server.clockSkew = -24 * 3600 * 1000
  const asked = server.heartbeats.length
  const taken = session.open({ after })
  session.type('echo "typed-$((1 + 1))"\n')
  await taken
  await session.shows(/typed-2\r\n/)
  t.true(server.heartbeats.length > asked)
  session.close()
  await session.ended()
})
