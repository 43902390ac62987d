import test from 'ava'
import { createJudge, judgedAddresses } from '../../../src/server/webhooks/judge.ts'

const judge = createJudge({ insecure: true, allow: ['127.0.0.0/8'] })

test('a lookup cancelled before its turn never starts and does not delay others', async (t) => {
  const began: string[] = []
  const ends: (() => void)[] = []
  const resolve = async (host: string) => {
    began.push(host)
    if (host.startsWith('stuck')) await new Promise<void>((end) => ends.push(end))
    return [{ address: '127.0.0.1', family: 4 }]
  }
  const running = new AbortController().signal
  const look = (host: string, signal = running) =>
    judgedAddresses({ judge, resolve }, new URL(`http://${host}/`), signal)
  const stuck = ['stuck1', 'stuck2'].map((host) => look(host))
  const leaving = new AbortController()
  const second = look('second', leaving.signal)
  const others = Array.from({ length: 199 }, (_, at) => look(`other${at}`))
  await t.throwsAsync(look('toomany'), {
    message: /toomany cannot be looked up: 200 other lookups are queued/,
  })
  leaving.abort()
  await t.throwsAsync(second, { message: /second cannot be looked up/ })
  const last = look('last')
  for (const end of ends) end()
  await Promise.all([...stuck, ...others, last])
  t.false(began.includes('second'))
  t.is(began.at(-1), 'last')
  await t.throwsAsync(look('late', leaving.signal), { message: /late cannot be looked up/ })
})
