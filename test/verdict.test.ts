import test from 'ava'
import { shortOf } from './helpers/chaos/verdict.ts'
import { leastTrouble, nothingDone, troubleOf } from './helpers/cluster/trouble.ts'

test('a cluster run in which nothing happened is below every minimum', (t) => {
  const done = nothingDone()
  const minima = leastTrouble(done, 12)
  t.is(shortOf(troubleOf(done), minima).length, Object.keys(minima).length)
})

test('counts below their minimum and missing counts are reported', (t) => {
  const minima = { kills: 12, executions: 60, terminals: 3 }
  t.deepEqual(shortOf({ kills: 12, executions: 59 }, minima), [
    'executions: 59 instead of at least 60',
    'terminals: 0 instead of at least 3',
  ])
  t.deepEqual(shortOf({ kills: 13, executions: 60, terminals: 3 }, minima), [])
})

test('servers that reach few or none of their fault points are reported', (t) => {
  const done = { ...nothingDone(), kills: 40, stops: 1, crashesOfPostgres: 1, handOvers: 1 }
  const told = (faultLives: number, missed: number) => {
    const all = { ...done, faultLives, missed: Array.from({ length: missed }, () => 'server.sent.after@1') }
    return shortOf(troubleOf(all), leastTrouble(all, 40))
  }
  t.deepEqual(told(0, 0), ['lives that ended at a fault point: 0 instead of at least 1'])
  t.deepEqual(told(2, 2), ['lives that ended at a fault point: 0 instead of at least 1'])
  t.deepEqual(told(12, 10), ['lives that ended at a fault point: 2 instead of at least 3'])
  t.deepEqual(told(12, 9), [])
})
