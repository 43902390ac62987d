import test from 'ava'
import { InputGuard } from '../../../src/agent/terminals/input-guard.ts'
import type { Payloads } from '../../../src/core/protocol/messages.ts'
import type { AgentLink } from '../../../src/server/storage/ports/cluster.ts'
import type { TerminalClient } from '../../../src/server/storage/ports/terminals.ts'
import { InputQueue } from '../../../src/server/terminals/input-queue.ts'

/** A link that writes at once, and the input sent over it. */
function notedLink() {
  const sent: Payloads['TERMINAL_INPUT'][] = []
  const link = {
    send(_type: string, payload: Payloads['TERMINAL_INPUT'], written: () => void) {
      sent.push(payload)
      written()
      return true
    },
  } as unknown as AgentLink
  return { link, sent }
}

test('P44 up to 64 KiB of input are kept for a disconnected host; more is refused', (t) => {
  const refused: unknown[] = []
  const client = { send: (_type: string, payload: unknown) => refused.push(payload) }
  const queue = new InputQueue('s1', () => client as unknown as TerminalClient)
  queue.push('x'.repeat(64 * 1024), 'x')
  t.deepEqual(refused, [])
  queue.push('y', 'last')
  t.like(refused[0], { code: 503, refId: 'last' })
  const { link, sent } = notedLink()
  queue.linked(link)
  t.is(sent.length, 4)
})

test('A10 P47 input for an agent with a key has a counter that starts at 0 per key; an older agent gets none', (t) => {
  const queue = new InputQueue('s1', () => null)
  const { link, sent } = notedLink()
  queue.offer()
  queue.linked(link)
  queue.push('old', 'x')
  for (const data of ['first', 'second']) {
    queue.linked(null)
    const guard = new InputGuard('s1', queue.offer())
    queue.agree(guard.publicKey)
    queue.linked(link)
    queue.push(data, 'x')
    t.is(guard.judge('TERMINAL_INPUT', sent.at(-1) ?? { sessionId: '', data: '' }), 'next')
  }
  t.deepEqual(
    sent.map(({ data, counter }) => [data, counter]),
    [
      ['old', undefined],
      ['first', 0],
      ['second', 0],
    ],
  )
})

test('A10 P47 an attacker who delays the agent’s key cannot cut off the input typed before it', (t) => {
  const queue = new InputQueue('s1', () => null)
  const { link, sent } = notedLink()
  const guard = new InputGuard('s1', queue.offer())
  queue.linked(link)
  queue.push('echo ', 'x')
  t.deepEqual(sent, [{ sessionId: 's1', data: 'echo ' }])
  queue.agree(guard.publicKey)
  queue.push('rm -r /srv\n', 'x')
  t.is(guard.judge('TERMINAL_INPUT', sent[1] ?? { sessionId: '', data: '' }), 'gap')
})

/** The queue of a session whose agent counts input, and the messages to its client. */
function startQueue({ acknowledges }: { acknowledges: boolean }) {
  const told: string[] = []
  const send = (type: string, payload: { by?: string; count?: number; message?: string }) =>
    void told.push(`${type} ${payload.message ?? `${payload.by} ${payload.count}`}`)
  const client = { acknowledges, send } as unknown as TerminalClient
  const { link, sent } = notedLink()
  const queue = new InputQueue('s1', () => client)
  queue.linked(link, { by: '', count: 0 })
  told.length = 0
  return { queue, told, link, sent, texts: () => sent.map(({ data }) => data) }
}

test('P58 after a lost link a counting client learns what arrived, and repeated input is forwarded once', (t) => {
  const { queue, told, link, sent } = startQueue({ acknowledges: true })
  queue.push('abcdef', 'f1', { by: 'a', position: 0 })
  queue.push('cd', 'f2', { by: 'a', position: 2 })
  queue.linked(null)
  t.is(queue.typed, null)
  queue.push('gh', 'f3', { by: 'a', position: 6 })
  queue.linked(link, { by: 'a', count: 4 })
  t.deepEqual(told, ['TERMINAL_TYPED a 4'])
  t.deepEqual(queue.typed, { by: 'a', count: 4 })
  queue.push('ij', 'f4', { by: 'a', position: 8 })
  queue.push('abcdefghij', 'f5', { by: 'a', position: 0 })
  const places = sent.map(({ data, by, position }) => [data, by, position])
  t.deepEqual(places, [
    ['abcdef', 'a', 0],
    ['efghij', 'a', 4],
  ])
  t.is(told.length, 1)
})

test('P58 without counting, input kept for a disconnected host is typed only if none before it is missing', (t) => {
  const { queue, told, link, sent, texts } = startQueue({ acknowledges: false })
  queue.push('rm -r ', 'f1')
  const { by = '' } = sent[0] ?? {}
  queue.linked(null)
  queue.push('/tmp/x', 'f2')
  queue.linked(link, { by, count: 6 })
  t.deepEqual(texts(), ['rm -r ', '/tmp/x'])
  queue.linked(null)
  queue.push('/y', 'f3')
  queue.linked(link, { by, count: 2 })
  t.is(texts().length, 2)
  t.deepEqual(told, [
    'ERROR connection lost: 12 characters of input are missing; check the line before you continue',
  ])
})

test('P58 with an agent that does not count, nothing is typed after input that may be missing', (t) => {
  const { queue, told, link, texts } = startQueue({ acknowledges: true })
  queue.linked(null)
  queue.linked(link)
  queue.push('first', 'f1')
  queue.linked(null)
  queue.push('second', 'f2')
  queue.linked(link)
  t.deepEqual(texts(), ['first'])
  t.deepEqual(told, [
    'TERMINAL_TYPED  0',
    'TERMINAL_TYPED null 0',
    'ERROR connection lost: input may be missing, and the 6 characters typed since are dropped; check the line before you continue',
  ])
})
