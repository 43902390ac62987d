import test from 'ava'
import { InputGuard } from '../../../src/agent/terminals/input-guard.ts'
import type { Payloads } from '../../../src/core/protocol/messages.ts'
import type { AgentLink } from '../../../src/server/engine/agent-link.ts'
import type { TerminalClient } from '../../../src/server/terminals/client.ts'
import { InputQueue } from '../../../src/server/terminals/input-queue.ts'

/** A link that writes at once, and what it was given. */
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

test('P44 while the host is away 64 KiB of input are kept, and what exceeds them is refused', (t) => {
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

test('A10 P47 input is marked for an agent that gave a key, from 0 for each message, and goes as it is to an older one', (t) => {
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

test('A10 P47 what was typed before the agent’s key came is missed: who held that back can’t cut the beginning off', (t) => {
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
