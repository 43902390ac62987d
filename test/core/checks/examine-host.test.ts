import test from 'ava'
import { type Examination, examineHost } from '../../../src/core/checks/examine-host.ts'
import { adviceFor, foldFindings, type HostFacts } from '../../../src/core/checks/finding.ts'
import { duplicateReason, revokedReason } from '../../../src/core/hosts/host-status.ts'
import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import { healthyAgent, healthyHost, metrics } from '../../helpers/api/records.ts'

type Agent = NonNullable<Host['agent']>
/** Changes to a healthy host. */
interface Change {
  host?: Partial<Host>
  agent?: Partial<Agent>
  facts?: Partial<HostFacts>
}

const now = Date.parse('2026-03-02T09:30:20.000Z')
const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString()
const serverInfo = { version: '0.1.0', serverTime: ago(0), heartbeatInterval: 30, metricsInterval: 60 }

function factsOf({ host = {}, agent = {}, facts = {} }: Change): HostFacts {
  return {
    host: {
      ...healthyHost,
      metrics: { ...metrics, timestamp: ago(20) },
      agent: { ...healthyAgent, lastHeartbeatAt: ago(7), ...agent },
      ...host,
    },
    url: 'https://rsm.example.org',
    server: serverInfo,
    now,
    waiting: 0,
    ...facts,
  }
}

/** One line per finding: `severity code: message → advice`. */
function told({ findings }: Examination): string[] {
  return findings.map((each) => `${each.severity} ${each.code}: ${each.message} → ${adviceFor(each, 'web1')}`)
}

const diskOf = (...disks: (readonly [string, number])[]): Partial<Host> => ({
  metrics: {
    ...metrics,
    timestamp: ago(20),
    disk: disks.map(([mountPoint, usagePercent]) => ({ mountPoint, usagePercent, totalGB: 1, usedGB: 1 })),
  },
})
const inodesOf = (mountPoint: string, inodesPercent: number): Partial<Host> => ({
  metrics: {
    ...metrics,
    timestamp: ago(20),
    disk: [{ mountPoint, usagePercent: 1, totalGB: 1, usedGB: 1, inodesPercent }],
  },
})
const silent = { status: 'OFFLINE', statusReason: 'no heartbeat for 300 s' } as const

const cases: readonly (readonly [title: string, change: Change, findings: readonly RegExp[]])[] = [
  ['a healthy host has no findings', {}, []],
  [
    'a host without an agent was never joined, and has no other findings',
    { host: { agent: null, status: 'OFFLINE', statusReason: 'never heard', metrics: null } },
    [
      /^error never-joined: no agent .* → rsm hosts join --replace web1, and run the line that it prints on web1$/,
    ],
  ],
  [
    'a revoked token is reported instead of the silence that it causes',
    { host: { status: 'OFFLINE', statusReason: revokedReason } },
    [/^error revoked: the agent token was revoked → .*rsm hosts join --replace web1$/],
  ],
  [
    'the finding of a silent host names the time and the server',
    { host: silent, agent: { connected: false, lastHeartbeatAt: ago(300) } },
    [
      /^error silent: no heartbeat for 5 min: .*does not reach https:\/\/rsm.example.org → .*rsm agent status$/,
    ],
  ],
  [
    'the agent of a silent host with a link is suspended or hangs',
    { host: silent, agent: { lastHeartbeatAt: ago(300) } },
    [/^error silent: .*the link is still up: the agent is suspended or hangs → on web1: rsm agent status$/],
  ],
  [
    'a host silent since the server started has no time in its finding',
    { host: silent, agent: { connected: false, lastHeartbeatAt: null } },
    [/^error silent: no heartbeat since the server started: /],
  ],
  [
    'a late heartbeat is reported before the host is OFFLINE',
    { agent: { lastHeartbeatAt: ago(60) } },
    [/^warning late: no heartbeat for 60 s, expected every 30 s: OFFLINE soon →/],
  ],
  [
    'a dead agent has one finding for its late heartbeat and its lost link, without a hint about proxies',
    {
      agent: {
        lastHeartbeatAt: ago(60),
        connected: false,
        onDemand: false,
        uptime: 3,
        linkFault: 'it is not open',
      },
    },
    [
      /^error late: no heartbeat for 60 s, expected every 30 s, and no link either: host or agent is down, .* → is web1 up\? then/,
    ],
  ],
  [
    'a link lost after the last heartbeat has no hint about proxies either',
    { agent: { connected: false, onDemand: false } },
    [
      /^error link-down: the link was lost after the last heartbeat, 7 s ago: .* → check again in a few seconds; then on web1/,
    ],
  ],
  [
    'an agent silent since its start has not just started',
    { agent: { connected: false, onDemand: false, uptime: 3, lastHeartbeatAt: ago(14) } },
    [/^error link-down: the link was lost after the last heartbeat, 14 s ago: /],
  ],
  [
    'no host is late on an older server, which sends no interval',
    { agent: { lastHeartbeatAt: ago(60) }, facts: { server: null } },
    [],
  ],
  [
    "a failing link is reported with the agent's reason and advice",
    { agent: { connected: false, onDemand: false, linkFault: 'the server answered 502' } },
    [
      /^error link-down: .*no link.*: the server answered 502 → a proxy in between .*https:\/\/rsm.example.org\/ws\/$/,
    ],
  ],
  [
    'an agent that was shut down is one finding at once',
    {
      agent: {
        connected: false,
        onDemand: false,
        linkFault: 'the agent was stopped at 2026-11-21T19:34:02.000Z',
      },
    },
    [
      /^error stopped: the agent was stopped at 2026-11-21T19:34:02.000Z: no script can run there → start it again on web1$/,
    ],
  ],
  ['an agent that links on demand needs no link', { agent: { connected: false, onDemand: true } }, []],
  [
    'a failing link of an on-demand agent with work is an error',
    { agent: { connected: false, onDemand: true, linkFault: 'connect ECONNREFUSED 10.0.0.1:443' } },
    [/^error link-down: .*ECONNREFUSED.* → nothing listens/],
  ],
  [
    'an agent that may link on demand',
    { agent: { connected: false, onDemand: null } },
    [/^warning link-down: .*the agent links on demand, or a proxy blocks WebSockets/],
  ],
  [
    'an agent that has just started may link soon',
    { agent: { connected: false, onDemand: false, uptime: 3 } },
    [/^note link-down: .*just started/],
  ],
  [
    'two agents with one identity',
    { host: { status: 'WARNING', statusReason: `${duplicateReason}, cpu 93 %` } },
    [
      /^error duplicate: two agents .* → stop the agent on the copy, .*rsm hosts join, and --hostname NAME for its agent$/,
    ],
  ],
  [
    'a degraded agent is reported with its reason',
    {
      host: { status: 'WARNING', statusReason: 'the agent reports DEGRADED' },
      agent: { status: 'DEGRADED', statusReason: '1 % free on the disk of /var/lib/rsm/agent' },
    },
    [
      /^warning degraded: the agent is DEGRADED: 1 % free on the disk of \/var\/lib\/rsm\/agent → free up space/,
    ],
  ],
  ...(
    [
      ['ENOENT', 'the directory was removed: on web1 stop the agent, .*rsm hosts join --replace web1'],
      ['EACCES', "on web1: make the directory accessible to the agent's user"],
      ['EROFS', 'on web1: dmesg'],
      ['EIO', 'on web1: dmesg'],
      ['ENOSPC', 'free up space on the disk'],
      ['ESTALE', 'on web1: look at the file system of the directory'],
    ] as const
  ).map(([code, advice]): (typeof cases)[number] => [
    `the advice for a data directory that cannot be read follows the error: ${code}`,
    {
      host: { status: 'WARNING', statusReason: 'the agent reports DEGRADED' },
      agent: { status: 'DEGRADED', statusReason: `the data directory /d cannot be read (${code})` },
    },
    [new RegExp(`^warning degraded: .*\\(${code}\\) → ${advice}`)],
  ]),
  [
    'nearly full disks are warnings, full disks errors, fullest first',
    {
      host: { ...diskOf(['/', 91.5], ['/var', 99], ['/home', 20]), status: 'WARNING', statusReason: 'disk' },
    },
    [
      /^error disk: disk \/var 99 % full → rsm exec -w web1 -- 'du -xh -d2 \/var /,
      /^warning disk: disk \/ 91 % full → /,
    ],
  ],
  [
    'S06 a mount point with shell syntax is not put into a command',
    { host: { ...diskOf(["/mnt/$(reboot)'; x", 95]), status: 'WARNING', statusReason: 'disk' } },
    [/→ rsm exec -w web1 -- 'du -xh -d2 \/ \| sort -h \| tail'$/],
  ],
  [
    'a silent host has no findings about its load, which cannot be examined',
    { host: { ...diskOf(['/', 100]), ...silent }, agent: { connected: false, lastHeartbeatAt: ago(300) } },
    [/^error silent/],
  ],
  [
    'the advice about the load of an unreachable host is a command for the host itself',
    {
      host: { ...diskOf(['/', 91.5]), status: 'WARNING', statusReason: 'disk' },
      agent: { connected: false, onDemand: false },
    },
    [/^error link-down/, /^warning disk: disk \/ 91 % full → on web1: du -xh /],
  ],
  [
    'reports that stopped arriving',
    { host: { metrics: { ...metrics, timestamp: ago(3600) } } },
    [/^note metrics: no report of cpu, memory and disks for 60 min/],
  ],
  [
    'A17 missing reports from before a restart of the server give no finding',
    {
      host: { metrics: null },
      agent: { registeredAt: ago(3600) },
      facts: { server: { ...serverInfo, startedAt: ago(30) } },
    },
    [],
  ],
  [
    'A17 missing reports since a restart are a finding, counted from the restart',
    {
      host: { metrics: null },
      agent: { registeredAt: ago(3600) },
      facts: { server: { ...serverInfo, startedAt: ago(600) } },
    },
    [/^note metrics: no report of cpu, memory and disks for 10 min/],
  ],
  [
    'A17 missing reports give no finding if the server does not send its start time',
    { host: { metrics: null }, agent: { registeredAt: ago(3600) } },
    [],
  ],
  [
    'a missing report of a host that has just joined gives no finding',
    { host: { metrics: null }, agent: { registeredAt: ago(30) } },
    [],
  ],
  [
    'a clock that is wrong in either direction',
    { agent: { clockOffsetSeconds: -7300 } },
    [/^warning clock: the clock is about 2 h behind: .* → on web1: timedatectl/],
  ],
  ['a clock off by seconds gives no finding', { agent: { clockOffsetSeconds: 9.9 } }, []],
  [
    'an agent that is one minor version older is a note',
    { facts: { server: { ...serverInfo, version: '0.2.0' } } },
    [
      /^note version: the agent is 0.1.0, the server 0.2.0 → install the release of the server on web1: rsm hosts upgrade web1$/,
    ],
  ],
  [
    'an agent of another major version is a warning',
    { agent: { agentVersion: '2.0.0-beta.1' } },
    [
      /^warning version: the agent is 2.0.0-beta.1: more than one minor version newer .*\(0.1.0\).* → upgrade the server: rsm server upgrade FILE$/,
    ],
  ],
  [
    'an agent that is two minor versions older is a warning',
    { facts: { server: { ...serverInfo, version: '0.3.0' } } },
    [/^warning version: the agent is 0.1.0: more than one minor version older .* → install the release of/],
  ],
  ['an invalid version is not compared', { agent: { agentVersion: 'test' } }, []],
  [
    'tasks waiting for an unreachable host are a note',
    { host: silent, agent: { connected: false, lastHeartbeatAt: ago(94) }, facts: { waiting: 2 } },
    [
      /^error silent: no heartbeat for 94 s/,
      /^note waiting: 2 tasks wait to run there → rsm tasks list --status RUNNING -w web1$/,
    ],
  ],
  [
    'each missing ability of a host is a note',
    {
      agent: {
        runAs: 'root',
        runsAsRoot: true,
        containment: 'process-group',
        enforces: ['processes'],
        terminal: false,
      },
    },
    [
      /^note root: .* → restart the agent with --run-as USER/,
      /^note containment: no cgroup: /,
      /^note limits: scripts with --limit memory, cpu are refused/,
      /^note terminal: /,
    ],
  ],
  [
    'missing terminals are a note with the reason',
    { agent: { terminal: false, terminalLack: 'this host has no /dev/ptmx' } },
    [
      /^note terminal: no terminal can be opened there: this host has no \/dev\/ptmx → rsm exec works without one$/,
    ],
  ],
  [
    'the advice for a read-only disk is not to free up space',
    {
      host: { status: 'WARNING', statusReason: 'the agent reports DEGRADED: /srv has become read-only' },
      agent: { status: 'DEGRADED', statusReason: '/srv has become read-only' },
    },
    [/^warning degraded: the agent is DEGRADED: \/srv has become read-only → on web1: dmesg/],
  ],
  [
    'inodes that run out are reported instead of space',
    { host: inodesOf('/srv/my mail', 100) },
    [
      /^error disk: inodes \/srv\/my mail 100 % in use → rsm exec -w web1 -- 'du --inodes -x -d2 \/ \| sort -n/,
    ],
  ],
  ['root in a sandbox gives no finding', { agent: { runsAsRoot: true, sandbox: 'strict' } }, []],
  [
    'a reason that only a newer server knows is passed on',
    { host: { status: 'WARNING', statusReason: 'its fan has stopped' } },
    [/^warning status: its fan has stopped → rsm hosts show web1$/],
  ],
]

test('checks based on the last heartbeat of an unreachable host are not listed as passed', (t) => {
  const gone = { connected: false, reachable: false, linkLostAt: ago(12), linkFault: null, onDemand: false }
  const away: Change[] = [
    { host: silent, agent: { ...gone, lastHeartbeatAt: ago(300), terminal: false } },
    { host: { statusReason: 'no link for 12 s' }, agent: { ...gone, lastHeartbeatAt: ago(20) } },
  ]
  t.deepEqual(
    away.map((change) => {
      const { findings, well } = examineHost(factsOf(change))
      return [findings.map(({ code }) => code).join(), well.join('; ')]
    }),
    [
      ['silent', ''],
      ['link-down', 'heard 20 s ago; no other agent has this identity'],
    ],
  )
  t.regex(examineHost(factsOf({})).well.join('; '), /the agent is healthy.*terminals can be opened/)
})

for (const [title, change, expected] of cases)
  test(title, (t) => {
    const lines = told(examineHost(factsOf(change)))
    t.is(lines.length, expected.length, lines.join('\n'))
    for (const [at, pattern] of expected.entries()) t.regex(lines[at] ?? '', pattern)
    // Findings fold over several hosts, so they must not speak of one.
    if (title.startsWith('a reason that only')) return
    for (const { message, title: folded } of examineHost(factsOf(change)).findings)
      t.notRegex(`${message}\n${folded}`, /\b(it|its|it's)\b/)
  })

test('checks that pass are listed in a few words, and unknown ones are omitted', (t) => {
  const words = ['linked', 'the agent is healthy']
  const ofWell = examineHost(factsOf({})).well
  t.deepEqual(
    words.filter((each) => ofWell.includes(each)),
    words,
  )
  const ofLate = examineHost(factsOf({ agent: { lastHeartbeatAt: ago(60), connected: false } })).well
  t.false(words.some((each) => ofLate.includes(each)))
  const seedOnly = {
    runAs: null,
    runsAsRoot: null,
    sandbox: null,
    containment: null,
    enforces: null,
    terminal: null,
  }
  const { findings, well } = examineHost(
    factsOf({ agent: { ...seedOnly, clockOffsetSeconds: null, onDemand: null } }),
  )
  t.deepEqual(findings, [])
  t.false(
    well.some((each) => /clock|scripts|terminal/.test(each)),
    well.join('; '),
  )
})

test('missing fields of an older server cause no finding', (t) => {
  const { host, ...facts } = factsOf({ facts: { server: null } })
  const { agentId, agentVersion, status, uptime, connected, registeredAt, lastHeartbeatAt } =
    host.agent as Agent
  const told = { agentId, agentVersion, status, uptime, connected, registeredAt, lastHeartbeatAt }
  const { findings, well } = examineHost({ ...facts, host: { ...host, agent: told as Agent } })
  t.deepEqual(findings, [])
  t.false(well.join().includes('undefined'), well.join())
})

test('equal findings fold under their hosts, worst first, with figures only if they are equal', (t) => {
  const hosts = [
    {
      hostname: 'web1',
      ...examineHost(factsOf({ host: { ...silent }, agent: { lastHeartbeatAt: ago(94) } })),
    },
    {
      hostname: 'web2',
      ...examineHost(factsOf({ host: { ...silent }, agent: { lastHeartbeatAt: ago(99) } })),
    },
    { hostname: 'db1', ...examineHost(factsOf({ agent: { terminal: false } })) },
    { hostname: 'db2', ...examineHost(factsOf({ agent: { clockOffsetSeconds: 60 } })) },
  ]
  t.deepEqual(
    foldFindings(hosts).map(({ hostnames, message }) => `${hostnames.join()}: ${message}`),
    [
      'web1,web2: no heartbeat: the link is still up: the agent is suspended or hangs',
      'db2: the clock is about 60 s ahead: times in logs are wrong, certificates may seem expired',
      'db1: no terminal can be opened there',
    ],
  )
})
