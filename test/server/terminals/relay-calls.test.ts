import { mock } from 'node:test'
import test from 'ava'
import { RsmError } from '../../../src/core/errors.ts'
import { Calls } from '../../../src/server/terminals/relay/calls.ts'
import type { Channel, Message } from '../../../src/server/terminals/relay/channel.ts'

test('a call without an answer in 30 s is unavailable, and others continue over the same channel', async (t) => {
  mock.timers.enable()
  t.teardown(() => mock.timers.reset())
  const sent: Message[] = []
  const unavailable = new RsmError('unavailable', 'no answer')
  let ended = 0
  const channel = { send: (message: Message) => void sent.push(message) } as unknown as Channel
  const calls = new Calls(
    () => channel,
    () => unavailable,
    () => void ended++,
  )
  const hangs = t.throwsAsync(calls.call('end', ['s1', '']), { is: unavailable })
  mock.timers.tick(20_000)
  const younger = calls.call('has', ['s1'])
  mock.timers.tick(10_000)
  await hangs
  calls.received(['answer', 2, true])
  t.true(await younger)
  t.is(ended, 0, 'the channel is in use')
  t.deepEqual(sent, [
    ['end', 1, 's1', ''],
    ['has', 2, 's1'],
  ])
  const late = t.throwsAsync(calls.call('has', ['s1']), { is: unavailable })
  calls.closed()
  await late
  t.is(ended, 1)
})
