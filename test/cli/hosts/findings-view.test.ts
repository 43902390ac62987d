import test from 'ava'
import { showFleet, showHost } from '../../../src/cli/hosts/findings-view.ts'
import { finding } from '../../../src/core/checks/finding.ts'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'

const hostOf = (hostname: string, statusReason: string | null) =>
  ({ hostname, status: statusReason === null ? 'ONLINE' : 'WARNING', statusReason }) as Host
const server = { url: 'https://rsm.example.org', version: '1.0.0', findings: [], well: [] }

test("S06 an agent's description of itself reaches the terminal as text", (t) => {
  const hostile =
    'the agent reports DEGRADED: \u001b]52;c;ZXZpbA==\u0007\u001b[2J\u202egnihton\r\nweb2 is ONLINE'
  const found = finding('degraded', 'warning', hostile, 'make room', hostile)
  const shown = showHost({
    host: hostOf('web1', hostile),
    hostname: 'web1',
    findings: [found],
    well: [hostile],
  })
  const folded = showFleet(server, [
    { host: hostOf('web1', hostile), hostname: 'web1', findings: [found], well: [] },
  ])
  for (const text of [shown, folded]) t.notRegex(text.replaceAll('\n', ''), /[\p{Cc}\p{Bidi_C}]/u)
  t.is(shown.split('\n').length, 4)
  t.is(folded.split('\n').length, 3)
})

test('advice names its host, or HOST if it is for several hosts', (t) => {
  const found = finding('never-joined', 'error', 'no agent', 'rsm hosts join --replace HOST')
  const examined = (hostname: string) => ({
    host: hostOf(hostname, 'x'),
    hostname,
    findings: [found],
    well: [],
  })
  const well = { host: hostOf('db1', null), hostname: 'db1', findings: [], well: ['linked'] }
  const one =
    'error    web1: no agent\n         rsm hosts join --replace web1\nproblems found on 1 of 2 hosts'
  t.is(showFleet(server, [examined('web1'), well]), one)
  const two =
    'error    web[1-2]: no agent\n         rsm hosts join --replace HOST\nproblems found on both hosts'
  t.is(showFleet(server, [examined('web1'), examined('web2')]), two)
  t.regex(showFleet(server, [examined('web1')]), /\nproblems found on the host$/)
  t.regex(
    showFleet(
      server,
      [1, 2, 3].map((n) => examined(`web${n}`)),
    ),
    /\nproblems found on all 3 hosts$/,
  )
  t.is(showFleet(server, [well]), 'no problems found on the host')
  t.is(showFleet(server, [well, well]), 'no problems found on either host')
  t.is(showFleet(server, [well, well, well]), 'no problems found on any of the 3 hosts')
  t.is(showFleet(server, []), 'no hosts yet: rsm hosts join')
})

test('on a terminal, prose wraps between words, and a command to copy is whole on a line of its own', (t) => {
  const path = '/srv/a-data-directory-with-a-long-name-that-nobody-would-like-to-type'
  const found = finding(
    'silent',
    'error',
    'no heartbeat for 5 min: host or agent is down, or does not reach https://rsm.example.org',
    `is HOST up? then on HOST: \`rsm agent status --data-dir ${path}\`; it says why`,
  )
  const short = finding('cpu', 'warning', 'cpu 98 % in use', "`rsm exec -w HOST -- 'ps aux'`")
  const examined = { host: hostOf('web1', 'x'), hostname: 'web1', findings: [found, short], well: ['linked'] }
  const lines = [
    'web1 is WARNING: x',
    'error    no heartbeat for 5 min: host or agent is down, or',
    '         does not reach https://rsm.example.org',
    '         is web1 up? then on web1:',
    `           rsm agent status --data-dir ${path}`,
    '         it says why',
    'warning  cpu 98 % in use',
    "         rsm exec -w web1 -- 'ps aux'",
    'ok       linked',
  ]
  t.is(showHost(examined, 60), lines.join('\n'))
  t.is(showHost(examined, undefined).split('\n').length, 6)
  t.notRegex(showFleet(server, [examined], undefined), /`/)
})

test('A16 a finding of all hosts is reported for all hosts, without their names', (t) => {
  const found = finding('never-joined', 'error', 'no agent', 'rsm hosts join --replace HOST')
  const examined = (hostname: string) => ({
    host: hostOf(hostname, 'x'),
    hostname,
    findings: [found],
    well: [],
  })
  const three = ['web1', 'web2', 'db1'].map(examined)
  t.regex(showFleet(server, three), /^error {4}all 3 hosts: no agent\n/)
  const well = { host: hostOf('db2', null), hostname: 'db2', findings: [], well: ['linked'] }
  t.regex(showFleet(server, [...three, well]), /^error {4}db1,web\[1-2\]: no agent\n/)
})
