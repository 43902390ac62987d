import test from 'ava'
import { Burst } from '../../src/core/rates.ts'

test('a burst lasts while its events are less than 5 s apart', (t) => {
  const burst = new Burst()
  t.deepEqual(
    [0, 1, 4000, 8000, 12_999, 18_000, 18_001].map((now) => burst.begins(now)),
    [true, false, false, false, false, true, false],
  )
})

test('a sentence begins one burst, and another after a pause; each sentence has its own bursts', (t) => {
  const burst = new Burst()
  t.true(burst.begins(0, 'dropped'))
  for (let now = 0; now < 60_000; now += 1000) t.false(burst.begins(now, 'dropped'))
  t.true(burst.begins(60_000, 'host away'))
  t.false(burst.begins(60_500, 'dropped'))
  t.true(burst.begins(70_000, 'dropped'))
})

test('a burst of many different sentences reports only a few', (t) => {
  const burst = new Burst()
  const news = Array.from({ length: 10_000 }, (_, at) => burst.begins(at / 10, `sentence ${at}`))
  t.true(news.filter(Boolean).length <= 8)
})
