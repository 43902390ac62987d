import test from 'ava'
import { createEarlyRoom } from '../../../src/server/listeners/link-bounds.ts'

const megabyte = 1024 * 1024
const frame = { data: Buffer.alloc(megabyte), isBinary: false }

/** Links that keep the frames that the test adds, and a list of the refused ones. */
function linksOf(count: number) {
  const room = createEarlyRoom()
  const refused: number[] = []
  const links = Array.from({ length: count }, (_, at) => room.open(() => refused.push(at)))
  return { links, refused }
}

test('P51 S10 links together keep 64 MiB before their first pongs; beyond that the largest is refused', (t) => {
  const { links, refused } = linksOf(100)
  for (const [at, link] of links.entries()) {
    if (refused.includes(at)) continue
    for (let frames = 0; frames < 15 && !refused.includes(at); frames++) link.add(frame)
    const kept = links.reduce((sum, { bytes }) => sum + bytes, 0)
    t.true(kept <= 64 * megabyte, `${kept} bytes`)
  }
  t.true(refused.length >= 95, `${refused.length} were refused`)
})

test('P51 links that keep little are not refused because of links that keep much', (t) => {
  const { links, refused } = linksOf(2000)
  const [hostile, honest] = [links.slice(0, 10), links.slice(10)]
  for (const link of hostile) for (let frames = 0; frames < 10; frames++) link.add(frame)
  for (const link of honest) link.add({ data: Buffer.alloc(8 * 1024), isBinary: false })
  t.true(refused.length > 0)
  t.true(refused.every((at) => at < hostile.length))
  t.deepEqual(
    honest.map((link) => link.take().length),
    honest.map(() => 1),
  )
})

test('frames that are read or dropped free their memory', (t) => {
  const { links, refused } = linksOf(50)
  for (const link of links) {
    for (let frames = 0; frames < 10; frames++) link.add(frame)
    t.is(link.take().length, 10)
    t.is(link.bytes, 0)
  }
  t.deepEqual(refused, [])
})
