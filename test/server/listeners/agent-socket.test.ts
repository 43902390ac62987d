import { EventEmitter } from 'node:events'
import test from 'ava'
import type { WebSocket } from 'ws'
import type { FromAgent } from '../../../src/core/protocol/messages.ts'
import { encode } from '../../../src/core/protocol/wire-text.ts'
import { createLog } from '../../../src/disk/log.ts'
import { AgentSocket } from '../../../src/server/listeners/agent-socket.ts'
import { createLinkBounds } from '../../../src/server/listeners/link-bounds.ts'
import { until } from '../../helpers/until.ts'

const idleTimeout = 300_000
const claim = {
  hostId: 1,
  agentId: 'a',
  server: { name: 'server', epoch: 1 },
  epoch: 7,
  since: new Date().toISOString(),
}

/** The part of a `ws` socket that AgentSocket uses. */
class Wire extends EventEmitter {
  readonly OPEN = 1
  readonly readyState = 1
  bufferedAmount = 0
  readonly calls: string[] = []
  readonly pings: (Buffer | undefined)[] = []
  pause = () => this.calls.push('pause')
  resume = () => this.calls.push('resume')
  ping = (data?: Buffer) => {
    this.calls.push('ping')
    this.pings.push(data)
  }
  terminate = () => this.calls.push('terminate')
  close = (code: number) => this.calls.push(`close ${code}`)
  send = () => undefined
  output(sequence: number, data: string): void {
    const frame = encode(
      'SCRIPT_OUTPUT',
      { taskId: 't', stream: 'stdout', sequence, data },
      `m${sequence}`,
      '',
    )
    this.emit('message', Buffer.from(frame), false)
  }
}

/** A link of a base-protocol agent under a clock of the test; `heard` lists the events of the link. */
function linkOnWire(message: (message: FromAgent) => Promise<void> = async () => undefined) {
  const wire = new Wire()
  const clock = { at: 0, now: () => clock.at, monotonic: () => clock.at }
  const heard: string[] = []
  const link = new AgentSocket(
    wire as unknown as WebSocket,
    { hostId: 1, agentId: 'a', ofOurs: false },
    {
      clock,
      log: createLog('ERROR'),
      bounds: createLinkBounds(),
      events: {
        proven: () => heard.push('proven'),
        hello: () => Promise.resolve(),
        message(_, frame) {
          heard.push(frame.type === 'SCRIPT_OUTPUT' ? `output ${frame.payload.sequence}` : frame.type)
          return message(frame)
        },
        strayed: () => heard.push('strayed'),
        closed: () => heard.push('closed'),
      },
    },
  )
  return { wire, clock, link, heard }
}

test('F11 a peer that is paused because its output waits for the disk does not count as dead', async (t) => {
  const stored: (() => void)[] = []
  const { wire, clock, link } = linkOnWire(() => new Promise<void>((resolve) => stored.push(resolve)))
  link.prove(claim)
  wire.emit('pong', wire.pings[0])
  const data = 'x'.repeat(600_000)
  for (const sequence of [0, 1]) wire.output(sequence, data)
  t.deepEqual(wire.calls, ['ping', 'pause'])
  clock.at = 60_000
  link.tick(idleTimeout)
  t.deepEqual(wire.calls, ['ping', 'pause', 'ping'])
  for (const resolve of stored) resolve()
  await new Promise(setImmediate)
  t.deepEqual(wire.calls, ['ping', 'pause', 'ping', 'resume'])
  clock.at = 75_000
  link.tick(idleTimeout)
  t.deepEqual(wire.calls, ['ping', 'pause', 'ping', 'resume', 'ping'])
  clock.at = 91_000
  link.tick(idleTimeout)
  t.is(wire.calls.at(-1), 'terminate')
})

test('P51 frames wait, in order, for the answer to a ping sent after the claim', (t) => {
  const { wire, link, heard } = linkOnWire()
  wire.output(0, 'before the claim')
  link.tick(idleTimeout)
  link.prove(claim)
  wire.output(1, 'after it')
  wire.emit('pong', Buffer.alloc(0))
  t.deepEqual(heard, [], 'that pong answers a ping from before the claim')
  t.true(link.backlogBytes > 0)
  link.tick(idleTimeout)
  wire.output(2, 'later')
  wire.emit('pong', wire.pings.at(-1))
  wire.output(3, 'at once')
  t.deepEqual(heard, ['proven', 'output 0', 'output 1', 'output 2', 'output 3'])
  wire.emit('pong', wire.pings.at(-1))
  t.is(heard.filter((what) => what === 'proven').length, 1)
})

test('P51 a peer that sends frames but answers no ping is closed within 45 s, and its frames are dropped', (t) => {
  const { wire, clock, link, heard } = linkOnWire()
  clock.at = 1_000
  link.prove(claim)
  for (let ticks = 0; ticks < 3; ticks += 1) {
    t.false(wire.calls.includes('terminate'))
    clock.at += 15_000
    wire.output(ticks, 'x')
    link.tick(idleTimeout)
  }
  t.is(wire.calls.at(-1), 'terminate')
  wire.emit('close', 1006, Buffer.alloc(0))
  wire.emit('pong', wire.pings[0])
  t.deepEqual(heard, ['closed'])
})

test('P33 a link that sends too fast is paused, and no frame is lost', async (t) => {
  const { wire, link, heard } = linkOnWire()
  link.prove(claim)
  wire.emit('pong', wire.pings[0])
  const frames = 2000
  for (let pings = 0; pings < 99_000; pings++) wire.emit('ping')
  t.deepEqual(wire.calls, ['ping'])
  for (let sequence = 0; sequence < frames; sequence++) wire.output(sequence, 'x')
  t.deepEqual(wire.calls, ['ping', 'pause'])
  t.is(heard.length, 1 + frames)
  link.tick(idleTimeout)
  t.is(wire.calls.at(-1), 'ping', 'the peer must not give up a link that is not read')
  await until('it is read again', () => wire.calls.at(-1) === 'resume')
})

test('P51 an agent that pings endlessly but never answers is closed within 45 s', (t) => {
  const { wire, clock, link, heard } = linkOnWire()
  link.prove(claim)
  for (let ticks = 0; ticks < 4; ticks++) {
    for (let pings = 0; pings < 400_000; pings++) wire.emit('ping')
    link.tick(idleTimeout)
    clock.at += 15_000
  }
  t.true(wire.calls.includes('pause'))
  t.is(wire.calls.at(-1), 'terminate')
  t.deepEqual(heard, [])
})

test('P51 an unproven agent that does not read its pongs is closed once 1 MiB of them is pending', (t) => {
  const { wire, link } = linkOnWire()
  link.prove(claim)
  wire.bufferedAmount = 1024 * 1024
  wire.emit('ping')
  t.deepEqual(wire.calls, ['ping'])
  wire.bufferedAmount += 1
  wire.emit('ping')
  t.is(wire.calls.at(-1), 'close 1013')
})

test('P51 the amount of data accepted before the answer to a ping is bounded', (t) => {
  const { wire, link, heard } = linkOnWire()
  link.prove(claim)
  const data = 'x'.repeat(1_000_000)
  for (let sequence = 0; sequence < 17; sequence++) wire.output(sequence, data)
  t.is(wire.calls.at(-1), 'close 1013')
  t.deepEqual(heard, ['closed'])
})
