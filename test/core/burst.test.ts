import test from 'ava'
import { Burst } from '../../src/core/burst.ts'

test('a burst goes on while its events are less than 5 s apart', (t) => {
  const burst = new Burst()
  t.deepEqual(
    [0, 1, 4000, 8000, 12_999, 18_000, 18_001].map((now) => burst.begins(now)),
    [true, false, false, false, false, true, false],
  )
})
