import test from 'ava'
import { createJudge, lookups } from '../../../src/server/webhooks/judge.ts'
import { createPost } from '../../../src/server/webhooks/post.ts'
import { startRawReceiver, startReceiver } from '../../helpers/servers/webhook-receiver.ts'

test('S14 a receiver that never responds, or only byte by byte, gets 10 s; a stop ends an attempt at once', async (t) => {
  const silent = await startRawReceiver(t, () => undefined)
  const trickling = await startRawReceiver(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    const timer = setInterval(() => socket.write('x-more: 1\r\n'), 200)
    socket.once('close', () => clearInterval(timer))
  })
  const poster = createPost(createJudge({ insecure: true, allow: ['127.0.0.0/8'] }))
  t.teardown(async () => poster.close())
  const post = (url: string, stop = new AbortController().signal) =>
    poster({ url, headers: {}, body: '{}' }, stop)
  const stopping = new AbortController()
  const stopped = post(silent, stopping.signal)
  stopping.abort()
  t.is(await stopped, null)
  const outcomes = await Promise.all([post(silent), post(trickling)])
  for (const outcome of outcomes) t.deepEqual(outcome, { status: null, error: 'no answer within 10 s' })
})

test('a name lookup that times out is reported as the reason, and the next attempt does not wait for it', async (t) => {
  const receiver = await startReceiver(t)
  const post = createPost(createJudge({ insecure: true, allow: ['127.0.0.0/8', '::1'] }))
  t.teardown(async () => post.close())
  const url = receiver.url.replace('127.0.0.1', 'localhost')
  const sending = { url, headers: {}, body: '{}' }
  const running = new AbortController().signal
  const ends: (() => void)[] = []
  const stuck = [1, 2].map(() => lookups.run(() => new Promise<void>((resolve) => ends.push(resolve))))
  t.deepEqual(await post(sending, running), {
    status: null,
    error: 'the name could not be looked up in time',
  })
  for (const end of ends) end()
  await Promise.all(stuck)
  t.deepEqual(await post(sending, running), { status: 204, error: null })
  t.is(receiver.got.length, 1)
})
