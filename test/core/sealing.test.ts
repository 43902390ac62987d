import { randomBytes } from 'node:crypto'
import test from 'ava'
import fc from 'fast-check'
import { RsmError } from '../../src/core/errors.ts'
import { open, seal, sealingKeyBytes } from '../../src/core/sealing.ts'

const key = randomBytes(sealingKeyBytes)
const context = 'hosts/17/password'

test('any sealed text opens with its key and context', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (plain, place) => {
      t.is(open(seal(plain, key, place, randomBytes), key, place), plain)
    }),
    { numRuns: 50 },
  )
  t.is(open(seal('\uFEFFsecret', key, context, randomBytes), key, context), '\uFEFFsecret')
})

test('S04 a sealed text does not open in another context or with another key', (t) => {
  const sealed = seal('secret', key, context, randomBytes)
  for (const [otherKey, place] of [
    [key, 'hosts/18/password'],
    [key, 'hosts/17/privateKey'],
    [randomBytes(sealingKeyBytes), context],
  ] as const) {
    t.throws(() => open(sealed, otherKey, place), { instanceOf: RsmError })
  }
})

test('S04 a modified, truncated or unsealed text does not open', (t) => {
  const sealed = Buffer.from(seal('secret', key, context, randomBytes), 'base64')
  for (let at = 0; at < sealed.length; at++) {
    const altered = Buffer.from(sealed)
    altered[at] = (altered[at] ?? 0) ^ 1
    t.throws(() => open(altered.toString('base64'), key, context), { instanceOf: RsmError })
  }
  for (const junk of ['', 'AQ==', 'not base64!', sealed.subarray(0, 30).toString('base64')]) {
    t.throws(() => open(junk, key, context), { instanceOf: RsmError })
  }
})

test('S04 the same secret sealed twice gives different texts, and neither contains it', (t) => {
  const [first, second] = [1, 2].map(() => seal('secret', key, context, randomBytes))
  t.not(first, second)
  t.false(Buffer.from(String(first), 'base64').includes('secret'))
})

test('a key of the wrong length is refused', (t) => {
  t.throws(() => seal('secret', new Uint8Array(16), context, randomBytes), { instanceOf: RsmError })
})
