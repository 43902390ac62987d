import test from 'ava'
import type { HostStatus, Metrics } from '../../../src/core/hosts/host.ts'
import {
  type HostSigns,
  hostStatus,
  isReachable,
  isSameStanding,
  type LinkSigns,
  linkReason,
  measuresNamed,
  nextLoad,
  noLoad,
  type ShownStatus,
  shownStatus,
  wholeReason,
} from '../../../src/core/hosts/host-status.ts'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import { healthyAgent } from '../../helpers/api/records.ts'

function metricsOf(cpu: number, memory: number, disks: Record<string, number> = {}): Metrics {
  return {
    timestamp: '2026-11-21T00:00:00.000Z',
    cpu: { usagePercent: cpu, loadAvg1m: 0, loadAvg5m: 0, loadAvg15m: 0 },
    memory: { totalMB: 1, usedMB: 1, availableMB: 1, usagePercent: memory },
    disk: Object.entries(disks).map(([mountPoint, usagePercent]) => ({
      mountPoint,
      totalGB: 1,
      usedGB: 1,
      usagePercent,
    })),
    network: { rxBytesPerSec: 0, txBytesPerSec: 0, connections: 0 },
  }
}

test('a disk without free inodes warns at once, and clears below 85 % like its space', (t) => {
  const reported = (inodesPercent?: number) => ({
    ...metricsOf(1, 1),
    disk: [
      {
        mountPoint: '/var',
        totalGB: 1,
        usedGB: 0,
        usagePercent: 1,
        ...(inodesPercent === undefined ? {} : { inodesPercent }),
      },
    ],
  })
  const load = nextLoad(noLoad, reported(100), 0)
  t.is(judge({ high: measuresNamed(reported(100), load.warns) }), 'WARNING: inodes /var 100 %')
  t.deepEqual(nextLoad(load, reported(86), 1).warns, ['inodes /var'])
  t.deepEqual(nextLoad(load, reported(84), 1), noLoad)
  t.deepEqual(nextLoad(load, reported(), 1), noLoad)
})

function judge(signs: Partial<HostSigns>): string {
  const { status, reason } = hostStatus({
    registered: true,
    secondsSilent: 0,
    heartbeatInterval: 30,
    agentStatus: 'HEALTHY',
    high: [],
    last: null,
    duplicateIdentity: false,
    ...signs,
  })
  return reason === null ? status : `${status}: ${reason}`
}

/** Warnings after `reports`, one per minute. */
function highAfter(reports: readonly Metrics[], warnAfter = 600): HostSigns['high'] {
  let load = noLoad
  for (const [minute, report] of reports.entries()) load = nextLoad(load, report, minute * 60_000, warnAfter)
  return measuresNamed(reports.at(-1) ?? null, load.warns)
}

const minutes = (count: number, report: Metrics) => Array.from({ length: count }, () => report)

const warned = { status: 'WARNING', reason: 'cpu 95 %' } as const
const offline = { status: 'OFFLINE', reason: 'no heartbeat for 300 s' } as const

const cases: readonly (readonly [title: string, signs: Partial<HostSigns>, standing: string])[] = [
  ['a host without an agent is OFFLINE', { registered: false }, 'OFFLINE: never heard'],
  ['a healthy heartbeat makes a host ONLINE', {}, 'ONLINE'],
  ['a heartbeat makes an OFFLINE host ONLINE', { last: offline }, 'ONLINE'],
  ['a host stays ONLINE for less than three intervals', { secondsSilent: 89.999 }, 'ONLINE'],
  ['a host is OFFLINE after three intervals', { secondsSilent: 90 }, 'OFFLINE: no heartbeat for 90 s'],
  [
    'a shorter interval makes a host OFFLINE earlier',
    { secondsSilent: 31, heartbeatInterval: 10 },
    'OFFLINE: no heartbeat for 31 s',
  ],
  [
    'silence takes precedence over warnings',
    { secondsSilent: 94.7, high: highAfter([metricsOf(1, 1, { '/': 99 })]) },
    'OFFLINE: no heartbeat for 94 s',
  ],
  ['DEGRADED warns', { agentStatus: 'DEGRADED' }, 'WARNING: the agent reports DEGRADED'],
  ['UNHEALTHY warns', { agentStatus: 'UNHEALTHY' }, 'WARNING: the agent reports UNHEALTHY'],
  [
    'no metric warns below 90 %',
    { high: highAfter(minutes(20, metricsOf(89.9, 89.9, { '/': 89.9 }))) },
    'ONLINE',
  ],
  [
    'A14 cpu at 90 % warns after 10 minutes',
    { high: highAfter(minutes(11, metricsOf(90, 1))) },
    'WARNING: cpu 90 %',
  ],
  ['A14 cpu does not warn before 10 minutes', { high: highAfter(minutes(10, metricsOf(100, 1))) }, 'ONLINE'],
  [
    'A14 memory warns after 10 minutes',
    { high: highAfter(minutes(11, metricsOf(1, 91.5))) },
    'WARNING: memory 91 %',
  ],
  [
    'A14 one report below 90 % restarts the 10 minutes',
    {
      high: highAfter([...minutes(9, metricsOf(99, 1)), metricsOf(89, 1), ...minutes(10, metricsOf(99, 1))]),
    },
    'ONLINE',
  ],
  [
    'A14 the 10 minutes can be configured',
    { high: highAfter(minutes(3, metricsOf(95, 1)), 120) },
    'WARNING: cpu 95 %',
  ],
  [
    'A14 a configured time of 0 warns at once',
    { high: highAfter([metricsOf(95, 1)], 0) },
    'WARNING: cpu 95 %',
  ],
  [
    'any disk warns at once',
    { high: highAfter([metricsOf(1, 1, { '/': 1, '/var': 93 })]) },
    'WARNING: disk /var 93 %',
  ],
  [
    'the highest metrics are named first and the rest counted',
    { high: highAfter([metricsOf(91, 1, { '/a': 92, '/b': 93, '/c': 94, '/d': 95 })], 0) },
    'WARNING: disk /d 95 %, disk /c 94 %, disk /b 93 %, 2 more',
  ],
  [
    'a warning lasts down to 85 %',
    { high: highAfter([metricsOf(95, 1), metricsOf(85, 1)], 0) },
    'WARNING: cpu 85 %',
  ],
  ['a warning clears below 85 %', { high: highAfter([metricsOf(95, 1), metricsOf(84.9, 1)], 0) }, 'ONLINE'],
  [
    'a metric below 90 % that has not warned does not warn',
    { high: highAfter([metricsOf(1, 1), metricsOf(89, 1)], 0) },
    'ONLINE',
  ],
  [
    'a warning disk does not make a lower cpu warn',
    { high: highAfter([metricsOf(88, 1, { '/': 95 }), metricsOf(88, 1, { '/': 88 })], 0) },
    'WARNING: disk / 88 %',
  ],
  [
    'a restart keeps the last status',
    { agentStatus: null, secondsSilent: 10, last: warned },
    'WARNING: cpu 95 %',
  ],
  [
    'a host is OFFLINE three intervals after a restart',
    { agentStatus: null, secondsSilent: 90, last: warned },
    'OFFLINE: no heartbeat for 90 s',
  ],
  [
    'a host that was OFFLINE before a restart keeps its reason',
    { agentStatus: null, secondsSilent: 500, last: offline },
    'OFFLINE: no heartbeat for 300 s',
  ],
  [
    'silence after a restart counts from the last heartbeat',
    { agentStatus: null, secondsSilent: 20, secondsSinceHeartbeat: 1020.7, last: offline },
    'OFFLINE: no heartbeat for 17 min',
  ],
  [
    'silence that begins at a restart counts from the last heartbeat too',
    { agentStatus: null, secondsSilent: 90, secondsSinceHeartbeat: 1020, last: warned },
    'OFFLINE: no heartbeat for 17 min',
  ],
  [
    'a clock that is set back shortens no silence',
    { agentStatus: null, secondsSilent: 500, secondsSinceHeartbeat: -7, last: offline },
    'OFFLINE: no heartbeat for 8 min',
  ],
  [
    'another reason is kept unchanged',
    {
      agentStatus: null,
      secondsSinceHeartbeat: 1020,
      last: { status: 'OFFLINE', reason: 'its agent token was revoked' },
    },
    'OFFLINE: its agent token was revoked',
  ],
  [
    'two agents with one identity warn',
    { duplicateIdentity: true },
    'WARNING: two agents use the identity of this host',
  ],
]
for (const [title, signs, standing] of cases)
  test(title, (t) => {
    t.is(judge(signs), standing)
  })

const same: [title: string, one: string, other: string, expected: boolean][] = [
  ['a changed percentage is the same standing', 'cpu 95 %', 'cpu 96 %', true],
  ['a changed order of metrics is the same standing', 'cpu 95 %, memory 94 %', 'memory 96 %, cpu 95 %', true],
  ['another metric is a different standing', 'cpu 95 %', 'disk / 95 %', false],
  ['another disk is a different standing', 'disk /a1 95 %', 'disk /a2 95 %', false],
  ['an additional metric is a different standing', 'cpu 95 %', 'cpu 95 %, memory 90 %', false],
]
for (const [title, one, other, expected] of same)
  test(title, (t) => {
    t.is(isSameStanding({ status: 'WARNING', reason: one }, { status: 'WARNING', reason: other }), expected)
  })

test('another status is a different standing, one more second of silence is not', (t) => {
  t.false(isSameStanding({ status: 'WARNING', reason: 'cpu 95 %' }, { status: 'ONLINE', reason: null }))
  t.true(isSameStanding(offline, { status: 'OFFLINE', reason: 'no heartbeat for 301 s' }))
})

const linked = { connected: true, hasLinked: true, onDemand: false, secondsUnlinked: 0, fault: null }
const without = { ...linked, connected: false, secondsUnlinked: 12.6 }
const heard = { status: 'ONLINE', reason: null, secondsSilent: 10, heartbeatInterval: 30 } as const
const stopped = 'the agent was stopped at 2026-11-22T07:43:14.470Z'

const reach: [
  title: string,
  link: LinkSigns,
  seen: Partial<typeof heard> | { status: 'WARNING' | 'OFFLINE' },
  is: boolean,
][] = [
  ['linked', linked, {}, true],
  ['linked, with a warning', linked, { status: 'WARNING' }, true],
  ['heartbeats but a lost link', without, {}, false],
  ['heartbeats and links on demand', { ...without, onDemand: true }, {}, true],
  ['heartbeats and never linked over rsm.1', { ...without, hasLinked: false }, {}, true],
  [
    'on demand, but silent for two intervals',
    { ...without, onDemand: true },
    { secondsSilent: 60 as 10 },
    false,
  ],
  ['on demand, but OFFLINE', { ...without, onDemand: true }, { status: 'OFFLINE' }, false],
]
for (const [title, link, seen, is] of reach)
  test(`A14 a host is ${is ? '' : 'not '}reachable: ${title}`, (t) => {
    t.is(isReachable(link, { ...heard, ...seen }), is)
  })

test('a silent host has one reason: a stopped agent or missing heartbeats', (t) => {
  t.is(wholeReason(offline, { ...without, fault: stopped }), 'its agent was stopped 12 s ago')
  t.is(wholeReason(offline, without), 'no heartbeat for 300 s')
  t.is(wholeReason({ status: 'WARNING', reason: 'disk / 93 %' }, without), 'no link for 12 s, disk / 93 %')
})

const gone = { connected: false, reachable: false, linkLostAt: '2026-03-02T09:30:00.000Z' }
const shown: [title: string, status: HostStatus, agent: object | null, is: ShownStatus][] = [
  ['has its link', 'ONLINE', {}, 'ONLINE'],
  ['lost its link', 'ONLINE', gone, 'NO LINK'],
  ['warns, and lost its link', 'WARNING', gone, 'NO LINK'],
  ['is OFFLINE, and so has no link', 'OFFLINE', gone, 'OFFLINE'],
  ['links on demand, and is late', 'ONLINE', { ...gone, onDemand: true }, 'ONLINE'],
  ['has never linked, and is late', 'ONLINE', { ...gone, linkLostAt: null }, 'ONLINE'],
  [
    'is on a server that does not send reachability',
    'ONLINE',
    { connected: false, reachable: undefined },
    'ONLINE',
  ],
  ['never had an agent', 'OFFLINE', null, 'OFFLINE'],
]
for (const [title, status, signs, is] of shown)
  test(`a host is shown as ${is} if it ${title}`, (t) => {
    const agent = signs === null ? null : ({ ...healthyAgent, ...signs } as Host['agent'])
    t.is(shownStatus({ status, agent }), is)
  })

const reasons: [title: string, link: LinkSigns, reason: string | null][] = [
  ['an agent with a link', linked, null],
  ['an agent that links on demand', { ...without, onDemand: true }, null],
  ['an agent that has never linked', { ...without, hasLinked: false }, null],
  ['an agent that lost its link', without, 'no link for 12 s'],
  ['an agent that was stopped', { ...without, fault: stopped }, 'its agent was stopped 12 s ago'],
  [
    'an agent that reports the fault',
    { ...without, secondsUnlinked: 300, fault: 'HTTP 502' },
    'no link for 5 min (HTTP 502)',
  ],
  ['a clock that was set back', { ...without, secondsUnlinked: -5 }, 'no link for 0 s'],
]
for (const [title, link, reason] of reasons)
  test(`A14 the reason for a missing link: ${title}`, (t) => {
    t.is(linkReason(link), reason)
  })
