import test from 'ava'
import { type AgentFacts, examineAgent, isReachable } from '../../../src/core/checks/examine-agent.ts'
import { adviceFor } from '../../../src/core/checks/finding.ts'

const well: AgentFacts = {
  pid: 7,
  isStopped: false,
  hostId: 1,
  url: 'https://rsm.example.org',
  onDemand: false,
  linked: true,
  reason: null,
  lastHeartbeatAt: '2026-03-02T09:30:12.480Z',
  heartbeatFault: null,
  clockOffsetSeconds: 0.1,
  terminalLack: null,
  dataDir: '/var/lib/rsm/agent',
  freePercent: 40,
  others: [],
  runAs: 'deploy',
  runsAsRoot: false,
  sandbox: 'none',
  containment: 'cgroup',
  enforces: ['memoryMB', 'processes', 'cpuPercent'],
}
const refused = 'connect ECONNREFUSED 10.0.0.1:443'

const cases: readonly (readonly [
  title: string,
  facts: Partial<AgentFacts>,
  reached: boolean,
  found: RegExp,
])[] = [
  ['a linked agent has no findings', {}, true, /^$/],
  ['an on-demand agent is reachable without a link', { linked: false, onDemand: true }, true, /^$/],
  [
    'an on-demand agent without heartbeats is not reachable',
    { linked: false, onDemand: true, heartbeatFault: refused },
    false,
    /^error silent: no heartbeat reaches the server: connect ECONNREFUSED.* → nothing listens at https/,
  ],
  [
    'an agent that is registering',
    { hostId: null, linked: false },
    false,
    /^error not-registered: it is registering/,
  ],
  [
    'a failed registration is reported once, with the reason',
    { hostId: null, linked: false, reason: refused },
    false,
    /^error not-registered: it is not registered yet: connect ECONNREFUSED.* → nothing listens[^\n]*$/,
  ],
  [
    'a missing heartbeat and a missing link are one finding',
    { linked: false, reason: refused, heartbeatFault: refused },
    false,
    /^error silent: [^\n]*$/,
  ],
  [
    'a failing link while heartbeats pass',
    { linked: false, reason: 'the server answered 502' },
    false,
    /^error link-down: it has no link: the server answered 502 → a proxy in between/,
  ],
  [
    'a stopped process is not reachable, whatever it last reported',
    { isStopped: true },
    false,
    /^error stopped: .* → kill -CONT 7$/,
  ],
  [
    'a nearly full disk',
    { freePercent: 7.9 },
    true,
    /^warning disk: 7 % free on the disk of \/var\/lib\/rsm\/agent: /,
  ],
  ['a full disk', { freePercent: 0 }, true, /^error disk: 0 % free/],
  ['a wrong clock', { clockOffsetSeconds: 3600 }, true, /^warning clock: the clock is about 60 min ahead/],
  [
    'other agents, the first three by name',
    { others: [1, 2, 3, 4, 5].map((pid) => ({ pid, user: 'root' })) },
    true,
    /^note other-agents: .*: pid 1 of root, pid 2 of root, pid 3 of root, 2 more → /,
  ],
  [
    'missing terminals, with the reason',
    { terminalLack: 'no /dev/ptmx' },
    true,
    /^note terminal: .*: no \/dev\/ptmx → /,
  ],
]

for (const [title, facts, reached, found] of cases)
  test(title, (t) => {
    const all = { ...well, ...facts }
    const lines = examineAgent(all).findings.map(
      (each) => `${each.severity} ${each.code}: ${each.message} → ${adviceFor(each, 'HOST')}`,
    )
    t.regex(lines.join('\n'), found)
    t.is(isReachable(all), reached)
  })
