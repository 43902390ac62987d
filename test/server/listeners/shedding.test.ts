import test from 'ava'
import { shareToClose } from '../../../src/server/listeners/web-sockets.ts'

/** Links that are left, second by second, of so many. */
function* left(links: number, from: number, to: number) {
  let open = links
  for (let second = from; second <= to; second++) {
    open -= Math.ceil(open * shareToClose(second * 1000, 1000))
    yield open
  }
}

test('links are kept until 30 s after the last renewed lease, and closed evenly over the 30 s that follow', (t) => {
  t.true([...left(3000, 0, 29)].every((open) => open === 3000))
  const closing = [...left(3000, 30, 60)]
  t.true(
    closing.every((open, second) => Math.abs(open - (3000 - 100 * (second + 1))) <= 100),
    closing.join(' '),
  )
  t.is(closing.at(-1), 0)
  t.is(shareToClose(90_000, 1000), 1)
})
