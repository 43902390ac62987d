import test from 'ava'
import { createLinks } from '../../../src/server/embedded/links.ts'
import { createOwnership } from '../../../src/server/embedded/ownership.ts'
import { linksContract } from '../../contracts/links.ts'

linksContract(test, async () => {
  let now = 0
  const clock = { now: () => Date.now(), monotonic: () => now }
  const ownership = createOwnership(clock)
  const links = createLinks(clock, ownership)
  return { links, ownership, forward: (time: number) => void (now += time) }
})
