import test from 'ava'
import { shareToClose } from '../../../src/server/listeners/closing.ts'

/** Number of remaining links out of `links`, second by second. */
function* left(links: number, from: number, to: number) {
  let open = links
  for (let second = from; second <= to; second++) {
    open -= Math.ceil(open * shareToClose(second * 1000, 1000))
    yield open
  }
}

test('links stay open until 30 s after the last renewed lease, then are closed evenly over 30 s', (t) => {
  t.true([...left(3000, 0, 29)].every((open) => open === 3000))
  const closing = [...left(3000, 30, 60)]
  t.true(
    closing.every((open, second) => Math.abs(open - (3000 - 100 * (second + 1))) <= 100),
    closing.join(' '),
  )
  t.is(closing.at(-1), 0)
  t.is(shareToClose(90_000, 1000), 1)
})
