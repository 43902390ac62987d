import { EventEmitter } from 'node:events'
import test from 'ava'
import type { WebSocket } from 'ws'
import { encode } from '../../../src/core/protocol/envelope.ts'
import { AgentSocket } from '../../../src/server/hub/agent-socket.ts'
import { createBacklog } from '../../../src/server/hub/backlog.ts'
import { createLog } from '../../../src/server/log.ts'

/** What of a `ws` socket an AgentSocket uses. */
class Wire extends EventEmitter {
  readonly OPEN = 1
  readonly readyState = 1
  readonly bufferedAmount = 0
  readonly calls: string[] = []
  pause = () => this.calls.push('pause')
  resume = () => this.calls.push('resume')
  ping = () => this.calls.push('ping')
  terminate = () => this.calls.push('terminate')
  close = () => this.calls.push('close')
  send = () => undefined
}

test('F11 a peer that is not read because its output waits for the disk does not count as dead', async (t) => {
  const wire = new Wire()
  let now = 0
  const stored: (() => void)[] = []
  const link = new AgentSocket(
    wire as unknown as WebSocket,
    { hostId: 1, agentId: 'a', ofOurs: false },
    {
      clock: { now: () => now, monotonic: () => now },
      log: createLog('ERROR'),
      backlog: createBacklog(),
      events: {
        hello: () => Promise.resolve(),
        message: () => new Promise<void>((resolve) => stored.push(resolve)),
        closed: () => undefined,
      },
    },
  )
  const data = 'x'.repeat(600_000)
  for (const sequence of [0, 1])
    wire.emit(
      'message',
      Buffer.from(
        encode('SCRIPT_OUTPUT', { taskId: 't', stream: 'stdout', sequence, data }, `m${sequence}`, ''),
      ),
      false,
    )
  t.deepEqual(wire.calls, ['pause'])
  now = 60_000
  link.tick(300_000)
  t.deepEqual(wire.calls, ['pause', 'ping'])
  for (const resolve of stored) resolve()
  await new Promise(setImmediate)
  t.deepEqual(wire.calls, ['pause', 'ping', 'resume'])
  now = 75_000
  link.tick(300_000)
  t.deepEqual(wire.calls, ['pause', 'ping', 'resume', 'ping'])
  now = 91_000
  link.tick(300_000)
  t.is(wire.calls.at(-1), 'terminate')
})
