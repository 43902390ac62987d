import test from 'ava'
import { createTurns } from '../../../src/server/webhooks/turns.ts'

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
