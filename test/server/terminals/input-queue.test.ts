import test from 'ava'
import type { AgentLink } from '../../../src/server/engine/agent-link.ts'
import type { TerminalClient } from '../../../src/server/terminals/client.ts'
import { InputQueue } from '../../../src/server/terminals/input-queue.ts'

test('P44 while the host is away 64 KiB of input are kept, and what exceeds them is refused', (t) => {
  const refused: unknown[] = []
  const client = { send: (_type: string, payload: unknown) => refused.push(payload) }
  const queue = new InputQueue('s1', () => client as unknown as TerminalClient)
  queue.push('x'.repeat(64 * 1024), 'x')
  t.deepEqual(refused, [])
  queue.push('y', 'last')
  t.like(refused[0], { code: 503, refId: 'last' })
  const sent: string[] = []
  const link = {
    send(_type: string, { data }: { data: string }, written: () => void) {
      sent.push(data)
      written()
      return true
    },
  }
  queue.linked(link as unknown as AgentLink)
  t.is(sent.length, 4)
})
