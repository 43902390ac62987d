import test from 'ava'
import fc from 'fast-check'
import { type BacklogShare, createBacklog } from '../../../src/server/listeners/link-bounds.ts'

const megabyte = 1024 * 1024

interface Link {
  share: BacklogShare
  held: boolean
  frames: number[]
}

function links(count: number): Link[] {
  const backlog = createBacklog()
  return Array.from({ length: count }, () => {
    const link: Partial<Link> = { held: false, frames: [] }
    link.share = backlog.share({
      pause: () => {
        link.held = true
      },
      resume: () => {
        link.held = false
      },
    })
    return link as Link
  })
}

test('a link with a backlog over 1 MiB is paused until most of it is stored', (t) => {
  const [link] = links(1)
  for (let frame = 0; frame <= 16; frame += 1) link?.share.add(65_536)
  t.true(link?.held)
  for (let frame = 0; frame < 12; frame += 1) link?.share.add(-65_536)
  t.true(link?.held)
  for (let frame = 0; frame < 2; frame += 1) link?.share.add(-65_536)
  t.false(link?.held)
})

test('F15 many links together keep at most 16 MiB, and a link with little traffic is never paused', (t) => {
  const all = links(1000)
  const quiet = all.pop()
  let total = 0
  for (let round = 0; round < 16; round += 1)
    for (const link of all)
      if (!link.held) {
        link.share.add(65_536)
        total += 65_536
      }
  // Each link may have one uncounted chunk, and the one that exceeded the bound.
  t.true(total <= 16 * megabyte + 1000 * 2 * 65_536, `${total / megabyte} MB`)
  quiet?.share.add(200)
  t.false(quiet?.held)
})

test('no link stays paused once its backlog is stored, in any order of events', (t) => {
  const step = fc.record({
    at: fc.nat(4),
    bytes: fc.integer({ min: 1, max: 6 * megabyte }),
    out: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const all = links(5)
      for (const { at, bytes, out } of steps) {
        const link = all[at]
        if (!link) continue
        if (out) link.share.add(-(link.frames.shift() ?? 0))
        else if (!link.held) {
          link.frames.push(bytes)
          link.share.add(bytes)
        }
        t.is(link.share.isPaused, link.held)
      }
      for (const link of all) for (const bytes of link.frames) link.share.add(-bytes)
      for (const { held, share } of all) {
        t.false(held)
        t.is(share.bytes, 0)
      }
    }),
  )
})
