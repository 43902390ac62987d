import test from 'ava'
import { readPin, showPin } from '../../src/core/endpoint.ts'

const hex = '0123456789abcdef'.repeat(4)
const colons = (hex.match(/../g) ?? []).join(':').toUpperCase()
const base64 = Buffer.from(hex, 'hex').toString('base64')

const good: readonly (readonly [text: string, shown: string])[] = [
  [`sha256//${base64}`, `sha256//${base64}`],
  [`sha256:${hex}`, `sha256:${hex}`],
  [hex, `sha256:${hex}`],
  [colons, `sha256:${hex}`],
  [`SHA-256:${colons}`, `sha256:${hex}`],
]
for (const [text, shown] of good)
  test(`${text} is the pin ${shown}`, (t) => t.is(showPin(readPin(text)), shown))

const bad = [
  '',
  'abc',
  `sha256//${hex}`,
  `sha256//${base64.slice(0, -1)}`,
  `sha256//${base64.replace(/.=$/, 'B=')}`,
  `sha256/${base64}`,
  `sha256:${hex}0`,
  `sha1:${hex}`,
  `sha256//${base64}\n`,
]
for (const text of bad)
  test(`${JSON.stringify(text)} is not a pin`, (t) => {
    t.throws(() => readPin(text), { code: 'usage', message: /^not a SHA-256 fingerprint: / })
  })
