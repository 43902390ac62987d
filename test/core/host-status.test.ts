import test from 'ava'
import { type HostSigns, hostStatus, tellsTheSame } from '../../src/core/host-status.ts'
import type { Metrics } from '../../src/core/protocol/http/hosts.ts'

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

function judge(signs: Partial<HostSigns>): string {
  const { status, reason } = hostStatus({
    registered: true,
    secondsSilent: 0,
    heartbeatInterval: 30,
    agentStatus: 'HEALTHY',
    metrics: null,
    last: null,
    duplicateIdentity: false,
    ...signs,
  })
  return reason === null ? status : `${status}: ${reason}`
}

const warned = { status: 'WARNING', reason: 'cpu 95 %' } as const
const offline = { status: 'OFFLINE', reason: 'no heartbeat for 300 s' } as const

const cases: readonly (readonly [title: string, signs: Partial<HostSigns>, standing: string])[] = [
  ['a host without an agent is OFFLINE', { registered: false }, 'OFFLINE: never heard'],
  ['a healthy heartbeat makes it ONLINE', {}, 'ONLINE'],
  ['a heartbeat brings it back', { last: offline }, 'ONLINE'],
  ['short of three intervals it stays', { secondsSilent: 89.999 }, 'ONLINE'],
  ['at three intervals it is OFFLINE', { secondsSilent: 90 }, 'OFFLINE: no heartbeat for 90 s'],
  ['the interval counts', { secondsSilent: 31, heartbeatInterval: 10 }, 'OFFLINE: no heartbeat for 31 s'],
  [
    'silence outweighs all',
    { secondsSilent: 94.7, metrics: metricsOf(99, 99) },
    'OFFLINE: no heartbeat for 94 s',
  ],
  ['DEGRADED warns', { agentStatus: 'DEGRADED' }, 'WARNING: the agent reports DEGRADED'],
  ['UNHEALTHY warns', { agentStatus: 'UNHEALTHY' }, 'WARNING: the agent reports UNHEALTHY'],
  ['below 90 % nothing warns', { metrics: metricsOf(89.9, 89.9, { '/': 89.9 }) }, 'ONLINE'],
  ['cpu warns', { metrics: metricsOf(90, 1) }, 'WARNING: cpu 90 %'],
  ['memory warns', { metrics: metricsOf(1, 91.5) }, 'WARNING: memory 91 %'],
  ['any disk warns', { metrics: metricsOf(1, 1, { '/': 1, '/var': 93 }) }, 'WARNING: disk /var 93 %'],
  [
    'the fullest are named first and the rest counted',
    { metrics: metricsOf(91, 1, { '/a': 92, '/b': 93, '/c': 94, '/d': 95 }) },
    'WARNING: disk /d 95 %, disk /c 94 %, disk /b 93 %, 2 more',
  ],
  ['a warning lasts down to 85 %', { last: warned, metrics: metricsOf(85, 1) }, 'WARNING: cpu 85 %'],
  ['a warning clears below 85 %', { last: warned, metrics: metricsOf(84.9, 1) }, 'ONLINE'],
  ['only a warning lasts', { last: { status: 'ONLINE', reason: null }, metrics: metricsOf(89, 1) }, 'ONLINE'],
  ['thresholds can be set', { metrics: metricsOf(71, 1), warnPercent: 70 }, 'WARNING: cpu 71 %'],
  ['a restart keeps what stood', { agentStatus: null, secondsSilent: 10, last: warned }, 'WARNING: cpu 95 %'],
  [
    'three intervals after a restart it is OFFLINE',
    { agentStatus: null, secondsSilent: 90, last: warned },
    'OFFLINE: no heartbeat for 90 s',
  ],
  [
    'what was OFFLINE before a restart keeps its reason',
    { agentStatus: null, secondsSilent: 500, last: offline },
    'OFFLINE: no heartbeat for 300 s',
  ],
  [
    'after a restart the silence is told from the last heartbeat',
    { agentStatus: null, secondsSilent: 20, secondsSinceHeartbeat: 1020.7, last: offline },
    'OFFLINE: no heartbeat for 1020 s',
  ],
  [
    'what a restart finds silent too',
    { agentStatus: null, secondsSilent: 90, secondsSinceHeartbeat: 1020, last: warned },
    'OFFLINE: no heartbeat for 1020 s',
  ],
  [
    'a clock that was set back shortens no silence',
    { agentStatus: null, secondsSilent: 500, secondsSinceHeartbeat: -7, last: offline },
    'OFFLINE: no heartbeat for 500 s',
  ],
  [
    'another reason stands as it is',
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
  ['a percentage that moved tells nothing new', 'cpu 95 %', 'cpu 96 %', true],
  ['nor does the order of the fullest', 'cpu 95 %, memory 94 %', 'memory 96 %, cpu 95 %', true],
  ['another measure is news', 'cpu 95 %', 'disk / 95 %', false],
  ['so is another disk', 'disk /a1 95 %', 'disk /a2 95 %', false],
  ['and one more of them', 'cpu 95 %', 'cpu 95 %, memory 90 %', false],
]
for (const [title, one, other, expected] of same)
  test(title, (t) => {
    t.is(tellsTheSame({ status: 'WARNING', reason: one }, { status: 'WARNING', reason: other }), expected)
  })

test('another status is news, one more second of silence is not', (t) => {
  t.false(tellsTheSame({ status: 'WARNING', reason: 'cpu 95 %' }, { status: 'ONLINE', reason: null }))
  t.true(tellsTheSame(offline, { status: 'OFFLINE', reason: 'no heartbeat for 301 s' }))
})
