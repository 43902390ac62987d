import test from 'ava'
import { createJudge } from '../../../src/server/webhooks/judge.ts'
import { inTurn } from '../../../src/server/webhooks/lookup.ts'
import { createPost } from '../../../src/server/webhooks/post.ts'
import { createTurns } from '../../../src/server/webhooks/turns.ts'
import { startReceiver } from '../../helpers/servers/webhook-receiver.ts'

const running = new AbortController().signal

test('what was given up before its turn never begins, and holds up nobody', async (t) => {
  const turns = createTurns(1, 2)
  const began: string[] = []
  let end = () => {}
  const first = turns(() => new Promise<void>((resolve) => (end = resolve)), running)
  const work = (name: string) => async () => void began.push(name)
  const leaving = new AbortController()
  const second = turns(work('second'), leaving.signal)
  const third = turns(work('third'), running)
  await t.throwsAsync(turns(work('fourth'), running), { message: '2 others wait for the same' })
  leaving.abort()
  await t.throwsAsync(second, { any: true, name: 'AbortError' })
  const fifth = turns(work('fifth'), running)
  end()
  await Promise.all([first, third, fifth])
  t.deepEqual(began, ['third', 'fifth'])
  await t.throwsAsync(turns(work('late'), leaving.signal), { any: true, name: 'AbortError' })
})

test('a name that is not looked up in time is said to be the reason, and the next try does not wait for it', async (t) => {
  const receiver = await startReceiver(t)
  const post = createPost(createJudge({ insecure: true, allow: ['127.0.0.0/8', '::1'] }))
  t.teardown(async () => post.close())
  const url = receiver.url.replace('127.0.0.1', 'localhost')
  const sending = { url, headers: {}, body: '{}' }
  const ends: (() => void)[] = []
  const stuck = [1, 2].map(() => inTurn(() => new Promise<void>((resolve) => ends.push(resolve)), running))
  t.deepEqual(await post(sending, running), {
    status: null,
    error: 'the name could not be looked up in time',
  })
  for (const end of ends) end()
  await Promise.all(stuck)
  t.deepEqual(await post(sending, running), { status: 204, error: null })
  t.is(receiver.got.length, 1)
})
