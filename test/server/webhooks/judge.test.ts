import { networkInterfaces } from 'node:os'
import test from 'ava'
import { createJudge } from '../../../src/server/webhooks/judge.ts'

const https = new URL('https://alerts.example.org/')
const strict = createJudge({})

const refusedUrls: readonly (readonly [url: string, why: RegExp])[] = [
  ['', /must be like/],
  ['alerts.example.org', /must be like/],
  ['ftp://alerts.example.org/', /must be like/],
  ['javascript:alert(1)', /must be like/],
  ['https://', /must be like/],
  ['https://ann:secret@alerts.example.org/', /must not contain a user or password/],
  ['http://alerts.example.org/', /must use https/],
  ['http://127.0.0.1/', /--webhook-insecure/],
  ['http://localhost:8080/', /--webhook-insecure/],
  ['https://127.0.0.1/', /127\.0\.0\.1, which is not a public address.*--webhook-allow 127\.0\.0\.1/],
  ['https://127.1/', /127\.0\.0\.1/],
  ['https://2130706433/', /127\.0\.0\.1/],
  ['https://0x7f000001/', /127\.0\.0\.1/],
  ['https://0x7f.0.0.1/', /127\.0\.0\.1/],
  ['https://0177.0.0.1/', /127\.0\.0\.1/],
  ['https://0/', /0\.0\.0\.0/],
  ['https://169.254.169.254/latest/meta-data/', /169\.254\.169\.254/],
  ['https://10.1.2.3/', /10\.1\.2\.3/],
  ['https://[::1]/', /::1/],
  ['https://[::]/', /::/],
  ['https://[::ffff:127.0.0.1]/', /127\.0\.0\.1/],
  ['https://[::ffff:a9fe:a9fe]/', /169\.254\.169\.254/],
  ['https://[64:ff9b::169.254.169.254]/', /169\.254\.169\.254/],
  ['https://[fe80::1]/', /fe80::1/],
  ['https://[fd00::1]/', /fd00::1/],
]

test('S14 a URL to a non-public address is refused with the reason, in any notation', (t) => {
  for (const [url, why] of refusedUrls) t.regex(strict.urlFault(url) ?? 'taken', why, url)
  for (const url of [
    'https://alerts.example.org/rsm?x=1',
    'https://alerts.example.org:8443',
    'https://1.1.1.1/',
  ])
    t.is(strict.urlFault(url), null, url)
})

const refused = `
0.0.0.0 10.0.0.1 100.64.0.1 127.8.9.1 169.254.169.254 172.31.0.1 192.168.1.1 192.0.0.8
192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 ::
::1 ::127.0.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 64:ff9b:1::808:808 100::1 2001::1 2001:db8::1
2002:7f00:1:: 2002:808:808:: 3fff::1 4000::1 fc00::1 fe80::1 fec0::1 ff02::1
`

test('S14 addresses other than global unicast are refused; mapped and NAT64 addresses count as their IPv4 address', (t) => {
  for (const address of refused.trim().split(/\s+/))
    t.regex(strict.addressFault(https, address) ?? 'taken', /is not a public address/, address)
  for (const address of ['8.8.8.8', '::ffff:8.8.8.8', '64:ff9b::808:808', '2606:4700::1111'])
    t.is(strict.addressFault(https, address), null, address)
})

test('S14 allowed addresses are accepted in every notation, and no others', (t) => {
  const judge = createJudge({ allow: ['127.0.0.0/8', '10.0.0.5', 'fd00::/8'] })
  for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '64:ff9b::7f00:1', '10.0.0.5', 'fd12::1'])
    t.is(judge.addressFault(https, address), null, address)
  for (const address of ['10.0.0.6', '::1', '169.254.169.254', 'fe80::1'])
    t.not(judge.addressFault(https, address), null, address)
})

test('S14 http is accepted only to an allowed loopback address on a server started with --webhook-insecure', (t) => {
  const insecure = createJudge({ insecure: true })
  t.regex(insecure.urlFault('http://127.0.0.1:8080/') ?? '', /--webhook-allow 127\.0\.0\.1/)
  const both = createJudge({ insecure: true, allow: ['127.0.0.1', '10.0.0.0/8'] })
  t.is(both.urlFault('http://127.0.0.1:8080/'), null)
  t.is(both.urlFault('http://localhost/'), null)
  t.regex(both.urlFault('http://10.0.0.1/') ?? '', /must use https/)
  t.regex(both.addressFault(new URL('http://localhost/'), '10.0.0.1') ?? '', /over http/)
  const withdrawn = createJudge({ allow: ['127.0.0.1'] })
  t.regex(withdrawn.urlFault('http://127.0.0.1/') ?? '', /--webhook-insecure/)
  t.regex(withdrawn.addressFault(new URL('http://localhost/'), '127.0.0.1') ?? '', /--webhook-insecure/)
})

test('S14 an address of the server itself is refused, public or not', (t) => {
  const own = Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address))
  t.true(own.length > 0)
  for (const address of own)
    t.regex(strict.addressFault(https, address) ?? 'taken', /--webhook-allow/, address)
})

test('an invalid network in --webhook-allow is refused at startup', (t) => {
  for (const allow of ['', 'x', '10', '10.0.0.0/33', 'fd00::/129', 'example.org'])
    t.throws(
      () => createJudge({ allow: [allow] }),
      { message: /--webhook-allow takes an address or a network/ },
      allow,
    )
})
