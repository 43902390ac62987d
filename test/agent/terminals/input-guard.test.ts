import { createHmac, createPublicKey, diffieHellman, generateKeyPairSync, hkdfSync } from 'node:crypto'
import test from 'ava'
import { InputGuard } from '../../../src/agent/terminals/input-guard.ts'
import { InputKey } from '../../../src/server/terminals/input-queue.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { LiveTerminal } from '../../helpers/terminals/terminal-session.ts'

function agreed(sessionId = 's1') {
  const key = new InputKey(sessionId)
  const guard = new InputGuard(sessionId, key.publicKey)
  key.agree(guard.publicKey)
  const input = (data: string) => key.addMac('TERMINAL_INPUT', { sessionId, data })
  const size = (cols: number) => key.addMac('TERMINAL_RESIZE', { sessionId, cols, rows: 24 })
  return { key, guard, input, size }
}

test('A10 P47 input with a valid MAC is accepted once, in the order in which it was typed', (t) => {
  const { guard, input, size } = agreed()
  const [first, second, third] = [input('a'), size(100), input('\0b\ud800漢')]
  t.is(guard.judge('TERMINAL_INPUT', first), 'next')
  t.is(guard.judge('TERMINAL_INPUT', first), 'again')
  t.is(guard.judge('TERMINAL_INPUT', third), 'gap')
  t.is(guard.judge('TERMINAL_RESIZE', second), 'next')
  t.is(guard.judge('TERMINAL_INPUT', third), 'next')
})

test('A10 P47 input with another text, counter, session, type or key, or without a MAC, is foreign', (t) => {
  const { guard, input, size } = agreed()
  const good = input('ls\n')
  const { mac = '', counter = 0, data } = good
  const foreign = [
    { sessionId: 's1', data },
    { ...good, mac: mac.slice(1) },
    { ...good, mac: `${mac}AAAA` },
    { ...good, mac: '' },
    { ...good, data: 'ls \n' },
    { ...good, counter: counter + 1 },
    { ...good, sessionId: 's2' },
    agreed().input('ls\n'),
    { sessionId: 's1', data, counter },
  ]
  for (const [at, input] of foreign.entries())
    t.is(guard.judge('TERMINAL_INPUT', input), 'foreign', String(at))
  const { cols, rows, ...marked } = size(80)
  t.is(guard.judge('TERMINAL_INPUT', { ...marked, data: `${cols}x${rows}` }), 'foreign')
  t.is(guard.judge('TERMINAL_INPUT', good), 'next')
})

test('A10 P47 each guard has its own key, and a public key of zeros is refused', (t) => {
  const { key, guard, input } = agreed()
  const again = new InputGuard('s1', key.publicKey)
  t.not(again.publicKey, guard.publicKey)
  t.is(again.judge('TERMINAL_INPUT', input('a')), 'foreign')
  const zero = Buffer.alloc(32).toString('base64url')
  t.throws(() => new InputGuard('s1', zero))
  t.throws(() => new InputKey('s1').agree(zero))
})

test('P47 the key and the MACs are derived as the protocol says', (t) => {
  const own = generateKeyPairSync('x25519')
  const serverKey = own.publicKey.export({ format: 'jwk' }).x ?? ''
  const guard = new InputGuard('s1', serverKey)
  const agentKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: guard.publicKey }, format: 'jwk' })
  const secret = diffieHellman({ privateKey: own.privateKey, publicKey: agentKey })
  const info = ['rsm typed input 1', 's1', serverKey, guard.publicKey].join('\0')
  const key = Buffer.from(hkdfSync('sha256', secret, '', info, 32))
  const macOf = (...parts: string[]) => createHmac('sha256', key).update(parts.join('\0')).digest('base64url')
  const input = { sessionId: 's1', data: 'ls -l\n', counter: 0 }
  const mac = macOf('TERMINAL_INPUT', 's1', '0', 'ls -l\n')
  t.is(guard.judge('TERMINAL_INPUT', { ...input, mac }), 'next')
  const size = { sessionId: 's1', cols: 100, rows: 24, counter: 1 }
  t.is(
    guard.judge('TERMINAL_RESIZE', { ...size, mac: macOf('TERMINAL_RESIZE', 's1', '1', '100x24') }),
    'next',
  )
})

test('A10 P47 a second agreement does not reset the counter, so that a gap is still detected', (t) => {
  const { key, guard, input } = agreed()
  t.is(guard.judge('TERMINAL_INPUT', input('a')), 'next')
  input('left out')
  for (const other of [new InputGuard('s1', key.publicKey).publicKey, guard.publicKey]) {
    key.agree(other)
    t.is(guard.judge('TERMINAL_INPUT', input('b')), 'gap')
  }
})

test('A10 P47 input without a MAC is typed only if the signed TERMINAL_OPEN had no key, as from older servers', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const old = await new LiveTerminal(server, agent.agentId).open()
  old.type('echo old-$((1 + 1))\n')
  await old.shows(/old-2\r\n/)
  const key = new InputKey('keyed1')
  const session = await new LiveTerminal(server, agent.agentId, 'keyed1').open({ inputKey: key.publicKey })
  session.type('echo unmarked-$((1 + 1))\n')
  session.resize(40, 10)
  await server.until(() => server.errors.some(({ sessionId }) => sessionId === 'keyed1'), 'it is refused')
  const [opened] = server.messages.flatMap(({ type, payload }) =>
    type === 'TERMINAL_OPENED' && payload.sessionId === 'keyed1' ? [payload] : [],
  )
  key.agree(opened?.inputKey ?? '')
  const typed = { sessionId: 'keyed1', data: 'stty size; echo marked-$((1 + 1))\n' }
  server.send('TERMINAL_INPUT', key.addMac('TERMINAL_INPUT', typed))
  t.regex(await session.shows(/marked-2\r\n/), /24 80\r\n/)
  t.notRegex(session.text(), /unmarked/)
  for (const each of [old, session]) each.close()
})

test('A10 P58 the MAC of input covers its position', (t) => {
  const key = new InputKey('s1')
  const guard = new InputGuard('s1', key.publicKey)
  key.agree(guard.publicKey)
  const input = key.addMac('TERMINAL_INPUT', { sessionId: 's1', data: 'x', by: 'a', position: 7 })
  for (const change of [
    { by: 'b' },
    { position: 8 },
    { by: undefined },
    { by: undefined, position: undefined },
  ])
    t.is(guard.judge('TERMINAL_INPUT', { ...input, ...change } as typeof input), 'foreign')
  t.is(guard.judge('TERMINAL_INPUT', input), 'next')
})

test('P58 the agent counts input, types none twice, and ends the session at a gap', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const session = await new LiveTerminal(server, agent.agentId).open({
    command: 'stty raw -echo; echo ok; cat',
  })
  await session.shows(/ok/)
  const typed = () =>
    server.messages.flatMap(({ type, payload }) =>
      type === 'TERMINAL_OPENED' && payload.sessionId === session.sessionId ? [payload.typed] : [],
    )
  const type = (data: string, by: string, position: number) =>
    server.send('TERMINAL_INPUT', { sessionId: session.sessionId, data, by, position })
  type('abc', 'a', 0)
  type('bcde', 'a', 1)
  type('ab', 'a', 0)
  type('fg', 'a', 5)
  type('hi', 'b', 0)
  await session.shows(/ok\r?\nabcdefghi$/)
  await session.open({ after: -1 })
  t.deepEqual(typed(), [
    { by: '', count: 0 },
    { by: 'b', count: 2 },
  ])
  type('x', 'b', 3)
  t.regex((await session.ended()).reason ?? '', /earlier input is missing/)
  t.notRegex(session.text(), /x/)
})
