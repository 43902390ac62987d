import test from 'ava'
import { adviceFor } from '../../../src/core/checks/finding.ts'
import { linkAdvice } from '../../../src/core/checks/link-trouble.ts'
import { closingWords } from '../../../src/core/protocol/close-codes.ts'

const url = 'https://rsm.example.org:8443'
const told = (reason: string, at: string) => adviceFor({ advice: linkAdvice(reason, at) }, 'HOST')

/** Errors of Node, OpenSSL, ws, the server and the agent. */
const cases: readonly (readonly [reason: string, advice: RegExp])[] = [
  ['getaddrinfo ENOTFOUND rsm.example.org', /does not resolve there: getent hosts rsm\.example\.org$/],
  [
    'POST https://rsm.example.org:8443/api/agent/heartbeat: connect ECONNREFUSED 10.0.0.1:8443',
    /nothing listens at/,
  ],
  ['POST https://rsm.example.org:8443/api/agent/heartbeat: no answer in 30 s', /is not reachable/],
  ['connect EHOSTUNREACH 10.0.0.1:8443', /firewalls and routes/],
  ['certificate has expired', /clock of HOST first/],
  ['certificate is not yet valid', /clock of HOST first/],
  ['self-signed certificate in certificate chain', /--ca-file FILE \(RSM_CA_FILE\), or --tls-fingerprint/],
  ['unable to get local issuer certificate', /--ca-file FILE/],
  [
    "Hostname/IP does not match certificate's altnames: Host: x. is not in the cert's altnames: DNS:y",
    /another name than rsm\.example\.org/,
  ],
  ["the server's certificate is ab12, not the pinned cd34", /new certificate/],
  [
    'write EPROTO 40A7:error:0A00010B:SSL routines:ssl3_get_record:wrong version number',
    /begin with http:\/\//,
  ],
  ['the server answered 401', /rsm hosts join --replace HOST/],
  ['the server answered 401: the token of this agent is not valid', /rsm hosts join --replace HOST/],
  ['This needs an agent token', /rsm hosts join --replace HOST/],
  ['This requires an agent token', /rsm hosts join --replace HOST/],
  ['it was closed with 4401', /token was revoked/],
  [closingWords(4401), /check again/],
  ['the server answered 409', /cloned disk/],
  ['it was closed with 4409', /cloned disk/],
  [closingWords(4409), /cloned disk/],
  ['the server answered 503', /reconnects automatically/],
  ['it was closed with 1001', /reconnects automatically/],
  ...[1000, 1001, 1013, 4408].map((code) => [closingWords(code), /reconnects automatically/] as const),
  ['the server answered 403', /blocks WebSockets/],
  ['the server answered 502', /Upgrade for https:\/\/rsm\.example\.org:8443\/ws\//],
  ['Opening handshake has timed out', /is not reachable/],
  ['socket hang up', /cut in between/],
  ['it was closed with 1006', /reconnects automatically/],
  [closingWords(1006), /reconnects automatically/],
  ['proxy 10.0.0.2:3128 for rsm.example.org:8443: answered 407', /HTTPS_PROXY/],
  [
    'POST https://rsm.example.org:8443/api/agent/heartbeat: through the proxy 10.0.0.2:3128: connect ECONNREFUSED 10.0.0.2:3128',
    /HTTPS_PROXY/,
  ],
  ['an error without a rule', /does HOST reach the server\? curl -m 5 https:\/\/rsm/],
]

test('causes of a failed link are recognized by the errors of Node, OpenSSL, the server and the agent', (t) => {
  for (const [reason, advice] of cases) t.regex(told(reason, url), advice, reason)
})

test('an address in brackets is resolved without them', (t) => {
  t.regex(told('EAI_AGAIN', 'http://[2001:db8::1]:18080'), /getent hosts 2001:db8::1$/)
})
