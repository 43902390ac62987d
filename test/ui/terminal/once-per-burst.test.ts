import test from 'ava'
import { OncePerBurst } from '../../../src/ui/terminal/once-per-burst.ts'

test('a sentence is news once in a burst, and again after a pause; another sentence is news by itself', (t) => {
  const burst = new OncePerBurst()
  t.true(burst.isNews('dropped', 0))
  for (let now = 0; now < 60_000; now += 1000) t.false(burst.isNews('dropped', now))
  t.true(burst.isNews('host away', 60_000))
  t.false(burst.isNews('dropped', 60_500))
  t.true(burst.isNews('dropped', 70_000))
})

test('a burst of ever other sentences says but a few', (t) => {
  const burst = new OncePerBurst()
  const news = Array.from({ length: 10_000 }, (_, at) => burst.isNews(`sentence ${at}`, at / 10))
  t.true(news.filter(Boolean).length <= 8)
})
