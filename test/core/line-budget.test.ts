import test from 'ava'
import { LineBudget } from '../../src/core/rates.ts'

test('each source may write ten lines a minute, and omitted lines are counted', (t) => {
  const budget = new LineBudget()
  for (let at = 0; at < 10; at++) t.is(budget.take('a', at), 0)
  for (let at = 10; at < 1000; at++) t.is(budget.take('a', at), null)
  t.is(budget.take('b', 1000), 990)
  t.is(budget.take('b', 1000), 0)
  t.is(budget.take('a', 59_999), null)
  t.is(budget.take('a', 60_000), 1)
})

test('an unlimited number of sources shares one budget in the end', (t) => {
  const budget = new LineBudget()
  let written = 0
  for (let at = 0; at < 100_000; at++) if (budget.take(`s${at}`, 0) !== null) written++
  t.is(written, 10_010)
})
