import type { IncomingMessage } from 'node:http'
import test from 'ava'
import { canonicalAddress, createClients } from '../../../src/server/access/client-address.ts'

const addresses: readonly (readonly [text: string, address: string | null])[] = [
  ['198.51.100.7', '198.51.100.7'],
  ['198.51.100.7:51234', '198.51.100.7'],
  ['2001:DB8:0:0:0:0:0:7', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['[2001:db8::7]:443', '2001:db8::7'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['0:0:0:0:0:ffff:c633:6407', '198.51.100.7'],
  ['', null],
  ['unknown', null],
  ['198.51.100', null],
  ['198.51.100.256', null],
  ['198.51.100.07', null],
  ['198.51.100.7:port', null],
  ['[198.51.100.7', null],
  ['2001:db8::7::1', null],
  ['fe80::1%eth0', null],
  ['198.51.100.7/32', null],
  ['198.51.100.7 203.0.113.1', null],
]
for (const [text, address] of addresses)
  test(`the client address in ${JSON.stringify(text)} is read as ${address}`, (t) => {
    t.is(canonicalAddress(text), address)
  })

for (const bad of [
  '10.0.0.0/33',
  '2001:db8::/129',
  'proxy.example',
  '10.0.0/8',
  '10.0.0.0/',
  '10.0.0.0/-1',
  '/8',
  '',
  'fe80::1%eth0',
])
  test(`the error for an invalid trusted proxy ${JSON.stringify(bad)} quotes it`, (t) => {
    const error = t.throws(() => createClients(['192.0.2.0/24', bad]))
    t.is(error.message, `--trusted-proxy takes an address or a network, not ${bad}`)
  })

const trusted: readonly (readonly [network: string, peer: string, isTrusted: boolean])[] = [
  ['10.0.0.0/8', '10.1.2.3', true],
  ['10.0.0.0/8', '11.1.2.3', false],
  ['10.0.0.0/8', '::ffff:10.1.2.3', true],
  ['10.0.0.0/8', '::ffff:11.1.2.3', false],
  ['10.0.0.5', '10.0.0.5', true],
  ['10.0.0.5', '10.0.0.6', false],
  ['10.1.2.3/8', '10.9.9.9', true],
  ['::ffff:10.0.0.0/104', '10.1.2.3', true],
  ['2001:db8::/32', '2001:db8:1::9', true],
  ['2001:db8::/32', '2001:db9::9', false],
  ['0.0.0.0/0', '2001:db8::1', false],
  ['10.0.0.0/8', '', false],
]
for (const [network, peer, isTrusted] of trusted)
  test(`--trusted-proxy ${network} ${isTrusted ? 'trusts' : 'does not trust'} ${peer || 'an empty address'}`, (t) => {
    t.is(createClients([network]).trusts(peer), isTrusted)
  })

test('no proxy is trusted by default', (t) => {
  const clients = createClients([])
  t.false(clients.trusts('127.0.0.1'))
  const headers = { 'x-forwarded-for': 'junk', 'x-forwarded-proto': 'junk' }
  const request = { headers, socket: { remoteAddress: '127.0.0.1' } } as unknown as IncomingMessage
  t.notThrows(() => clients.check(request))
  t.is(clients.addressOf(request), '127.0.0.1')
  t.is(clients.schemeOf(request), null)
})
