import test from 'ava'
import { systemClock } from '../../../src/server/clock.ts'
import { createOwnership } from '../../../src/server/embedded/ownership.ts'
import { createRelay } from '../../../src/server/embedded/relay.ts'
import { relayContract } from '../../contracts/relay.ts'

relayContract(test, async () => {
  const ownership = createOwnership(systemClock)
  return { relay: createRelay(), join: (name) => ownership.join(name) }
})
