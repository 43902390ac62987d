import test from 'ava'
import { type Join, joinString, readJoin, readPin, showPin } from '../../src/core/endpoint.ts'

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

const badPins = [
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
for (const text of badPins)
  test(`${JSON.stringify(text)} is not a pin`, (t) => {
    t.throws(() => readPin(text), { code: 'usage', message: /^not a SHA-256 fingerprint: / })
  })

const token = `rsm_enr_${'aB3_-'.repeat(9).slice(0, 43)}`
const fingerprint = `sha256//${'A'.repeat(43)}=`
const url = 'https://rsm.example.org:18080'

const joins: readonly Join[] = [
  { url, token },
  { url, token, fingerprint },
  { url: "https://rsm.example.org/it's/rsm", token, fingerprint: `sha256:${'0'.repeat(64)}` },
]
for (const join of joins)
  test(`a join string holds ${JSON.stringify(join)}`, (t) => {
    const text = joinString(join)
    t.regex(text, /^rsm-join:[\w-]+$/)
    t.deepEqual(readJoin(`\n ${text}\n`), join)
  })

const whole = joinString({ url, token, fingerprint })
const made = (value: unknown) => `rsm-join:${Buffer.from(JSON.stringify(value)).toString('base64url')}`

test('a truncated join string is refused, wherever it is cut', (t) => {
  for (let length = 0; length < whole.length; length++)
    t.throws(() => readJoin(whole.slice(0, length)), { code: 'usage' }, `cut to ${length}`)
  for (let length = 40; length < whole.length; length++)
    t.throws(() => readJoin(whole.slice(0, length)), { message: /^the join string was cut/ }, `${length}`)
})

const badJoins: readonly (readonly [what: string, text: string, message: RegExp])[] = [
  ['nothing', '', /^there is no join string$/],
  ['a token', token, /^not a join string: one begins with rsm-join:$/],
  ['a blank within', `${whole.slice(0, 50)} ${whole.slice(50)}`, /altered: unexpected " "/],
  ['an invalid character', whole.replace(/.$/, '%'), /altered: unexpected "%"/],
  ['JSON that is not an object', made(null), /altered: not a JSON object/],
  ['a newer version', made({ v: 2, url, token }), /has version 2; this rsm supports only 1/],
  ['no version', made({ url, token }), /altered: its version is unknown/],
  ['an extra field', made({ v: 1, url, token, extra: 1 }), /altered: its extra is unknown/],
  ['no URL', made({ v: 1, token }), /altered: it has no url/],
  ['an invalid URL', made({ v: 1, url: 'ftp://x', token }), /altered: invalid url/],
  ['half a token', made({ v: 1, url, token: token.slice(0, -1) }), /altered: invalid token/],
  ['an invalid pin', made({ v: 1, url, token, fingerprint: 'x' }), /altered: invalid fingerprint/],
]
for (const [what, text, message] of badJoins)
  test(`the error about a join string with ${what} says what is wrong`, (t) => {
    const error = t.throws(() => readJoin(text), { code: 'usage', message })
    t.notRegex(error.message, /rsm_enr_/)
  })
