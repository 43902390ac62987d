import test from 'ava'
import { endpointOf, refuseAdvertised } from '../../../src/server/app/options.ts'

const own = { url: 'https://10.0.0.1:18080', pin: 'sha256//own' }

for (const [advertise, url, pin] of [
  [undefined, own.url, own.pin],
  ['rsm1:8443', 'https://rsm1:8443', own.pin],
  ['[fd00::1]:18080', 'https://[fd00::1]:18080', own.pin],
  ['https://RSM1.example.org/', 'https://rsm1.example.org', null],
  ['http://127.0.0.1:18080', 'http://127.0.0.1:18080', null],
] as const)
  test(`--advertise ${advertise}: other servers connect to ${url}, and check ${pin ? 'its key' : 'by authorities'}`, (t) => {
    t.notThrows(() => refuseAdvertised({ advertise, insecureHttp: false }))
    t.deepEqual(endpointOf({ advertise }, own.url, own.pin), { url, pin })
  })

for (const advertise of [
  'rsm1',
  ':18080',
  'rsm1:port',
  'ftp://rsm1',
  'https://user:x@rsm1',
  'http://rsm1:18080',
])
  test(`--advertise ${advertise} is refused`, (t) => {
    t.throws(() => refuseAdvertised({ advertise, insecureHttp: false }), { code: 'usage' })
  })

test('--advertise http:// is accepted with --insecure-http', (t) => {
  t.notThrows(() => refuseAdvertised({ advertise: 'http://rsm1:18080', insecureHttp: true }))
})
