import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { LiveTerminal, ranOnTerminal } from '../../helpers/terminals/terminal-session.ts'
import { until } from '../../helpers/until.ts'

const kib = 1024

test('a flood of output stops at 256 KiB without acknowledgements, and continues where it stopped', async (t) => {
  const { server, agent } = await linkedAgent(t)
  server.acksTerminals = false
  const session = await new LiveTerminal(server, agent.agentId).open({
    command: 'head -c 1000000 /dev/zero | tr "\\0" x',
  })
  const received = () => session.text().length
  await server.until(() => received() >= 256 * kib, 'the window is full')
  server.execute(agent.agentId, { taskId: 'beside' })
  await server.completed('beside')
  t.true(received() < 256 * kib + 64 * kib, `${received()} characters`)
  t.is(session.ends().length, 0)
  server.acksTerminals = true
  session.acknowledge(session.frames().length - 1)
  t.is((await session.ended()).exitCode, 0)
  t.is(session.text(), 'x'.repeat(1_000_000))
})

test('Ctrl-C during a flood of output takes effect at once, and scripts run at the same time', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const session = await new LiveTerminal(server, agent.agentId).open()
  session.type('PS1=prompt-$((1+1)):; yes\n')
  await server.until(() => session.text().length > 2_000_000, 'the flood arrives')
  server.execute(agent.agentId, { taskId: 'beside', script: 'head -c 3000000 /dev/zero | tr "\\0" y' })
  t.is((await server.completed('beside')).status, 'SUCCESS')
  t.is(server.text('beside').length, 3_000_000)
  session.type('\x03')
  await session.shows(/prompt-2:$/)
  session.type('echo alive-$((1 + 1))\n')
  await session.shows(/alive-2/)
  session.close()
  await session.ended()
})

test('a paste of 1 MB arrives unchanged, even if the program starts reading late', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const session = await new LiveTerminal(server, agent.agentId).open({
    command: 'stty raw -echo; echo ready; sleep 0.5; head -c 1000000 | cksum; stty sane; exit 4',
  })
  await session.shows(/ready/)
  const text = 'The quick brown fox. '.repeat(47_620).slice(0, 1_000_000)
  for (let at = 0; at < text.length; at += 100_000) session.type(text.slice(at, at + 100_000))
  t.is((await session.ended()).exitCode, 4)
  const direct = await ranOnTerminal(server, agent.agentId, {
    command: `yes 'The quick brown fox. ' | tr -d '\\n' | head -c 1000000 | cksum`,
  })
  t.regex(direct.text, /^\d+ 1000000\r\n$/)
  t.true(session.text().includes(direct.text.trim()), session.text())
})

test('unread input is bounded, and the server gets one error', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const session = await new LiveTerminal(server, agent.agentId).open({
    command: 'stty raw -echo; echo ready; sleep 600',
  })
  await session.shows(/ready/)
  for (let sent = 0; sent < 60; sent += 1) session.type('z'.repeat(100_000))
  await server.until(() => server.errors.length > 0, 'the error arrives')
  session.close()
  await session.ended()
  const { sessionId } = session
  t.deepEqual(server.errors, [
    {
      code: 413,
      message: `session ${sessionId}: its program does not read; input is dropped`,
      refId: null,
      sessionId,
    },
  ])
})

test('P58 input after dropped input is also dropped until the program has read everything before it', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const gate = join(dataDir, 'gate')
  const session = await new LiveTerminal(server, agent.agentId).open({
    command: `stty raw -echo; echo ready; until [ -e ${gate} ]; do sleep 0.02; done; tr -d z`,
  })
  await session.shows(/ready/)
  for (let sent = 0; sent < 45; sent += 1) session.type('z'.repeat(100_000))
  session.type('rm -r /tmp/x')
  await server.until(() => server.errors.length > 0, 'the error arrives')
  writeFileSync(gate, '')
  await until('a key is typed again', () => {
    session.type('.\n')
    return session.text().includes('.')
  })
  t.regex(session.text(), /ready\r?\n(?:\.\r?\n)+$/)
})

test('Ctrl-C after dropped input discards the pending input and reaches the program', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const gate = join(dataDir, 'gate')
  const session = await new LiveTerminal(server, agent.agentId).open({
    command: `stty -icanon -echo; trap 'echo interrupted; exit 7' INT; echo ready; until [ -e ${gate} ]; do sleep 0.02; done; tr -d z`,
  })
  await session.shows(/ready/)
  for (let sent = 0; sent < 60; sent += 1) session.type('z'.repeat(100_000))
  await server.until(() => server.errors.length > 0, 'the error arrives')
  session.type('\x03')
  writeFileSync(gate, '')
  await session.shows(/interrupted/)
  t.is((await session.ended()).exitCode, 7)
})
