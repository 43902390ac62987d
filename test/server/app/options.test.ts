import test from 'ava'
import { endpointOf, refuseAdvertised } from '../../../src/server/app/options.ts'

const plain = { selfSigned: false, hsts: false }
const secured = { selfSigned: true, hsts: false }
const own = { url: 'https://10.0.0.1:18080', pin: 'sha256//own' }

for (const [advertise, url, pin] of [
  [undefined, own.url, own.pin],
  ['rsm1:8443', 'https://rsm1:8443', own.pin],
  ['[fd00::1]:18080', 'https://[fd00::1]:18080', own.pin],
  ['https://RSM1.example.org/', 'https://rsm1.example.org', null],
  ['http://127.0.0.1:18080', 'http://127.0.0.1:18080', null],
] as const)
  test(`--advertise ${advertise}: other servers connect to ${url}, and check ${pin ? 'its key' : 'by authorities'}`, (t) => {
    t.notThrows(() => refuseAdvertised({ advertise, tls: secured, insecureHttp: false }))
    t.deepEqual(endpointOf({ advertise }, own.url, own.pin), { url, pin })
  })

for (const advertise of [
  'rsm1',
  ':18080',
  'rsm1:port',
  'rsm1:99999',
  '10.0.0.256:18080',
  '[::::]:18080',
  'ftp://rsm1',
  'https://user:x@rsm1',
  'http://rsm1:18080',
])
  test(`--advertise ${advertise} is refused`, (t) => {
    t.throws(() => refuseAdvertised({ advertise, tls: secured, insecureHttp: false }), { code: 'usage' })
  })

for (const advertise of ['http://rsm1:18080', 'rsm1:18080'])
  test(`--advertise ${advertise} without TLS requires --insecure-http`, (t) => {
    t.throws(() => refuseAdvertised({ advertise, tls: plain, insecureHttp: false }), {
      message: /in the clear/,
    })
    t.notThrows(() => refuseAdvertised({ advertise, tls: plain, insecureHttp: true }))
  })

test('--advertise HOST:PORT of this machine needs no TLS', (t) => {
  t.notThrows(() => refuseAdvertised({ advertise: '127.0.0.1:18080', tls: plain, insecureHttp: false }))
})

test('an error of --advertise does not repeat a password', (t) => {
  const given = { advertise: 'user:secret@rsm1:18080', tls: secured, insecureHttp: false }
  const { message } = t.throws(() => refuseAdvertised(given), { code: 'usage' })
  t.notRegex(message, /secret/)
})
