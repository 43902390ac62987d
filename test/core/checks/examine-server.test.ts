import test from 'ava'
import { examineServer, type ServerFacts } from '../../../src/core/checks/examine-server.ts'

const day = 86_400_000
const now = Date.parse('2026-03-02T09:30:20.000Z')
const well: ServerFacts = {
  url: 'https://rsm.example.org',
  info: {
    version: '1.2.0',
    serverTime: '2026-03-02T09:30:20.000Z',
    heartbeatInterval: 30,
    metricsInterval: 60,
  },
  version: '1.2.0',
  clockOffsetSeconds: 0.3,
  notReady: null,
  status: null,
  certificateEnds: now + 90 * day,
  now,
}

const cases: readonly (readonly [title: string, change: Partial<ServerFacts>, found: string])[] = [
  ['a healthy server has no findings', {}, ''],
  ['an older rsm is a note', { version: '1.1.9' }, 'note version: it is 1.2.0, this rsm 1.1.9'],
  [
    'an rsm of another major version is a warning',
    { version: '2.0.0' },
    'warning version: it is 1.2.0, this rsm 2.0.0: they may not understand each other',
  ],
  ['a server too old to send its version has no findings', { info: null, clockOffsetSeconds: null }, ''],
  [
    'differing clocks are a warning',
    { clockOffsetSeconds: -65 },
    "warning clock: the clock here is about 65 s behind the server's: one of them is wrong",
  ],
  [
    'a store that refuses writes is an error',
    { notReady: 'its store refuses writes' },
    'error not-ready: it does not accept work: its store refuses writes',
  ],
  [
    'A02 a server restored from a backup that holds executions is an error',
    {
      status: {
        version: '1.2.0',
        serverTime: '2026-03-02T09:30:20.000Z',
        startedAt: '2026-03-02T09:30:00.000Z',
        run: { run: 'r', sequence: 7 },
        restore: {
          noticedAt: '2026-03-02T09:30:10.000Z',
          reason: 'the agent of web1 says so',
          hostId: 1,
          agentId: 'agent-web1',
          tasks: 1,
          executions: 3,
        },
        clock: null,
      },
    },
    'error restored: it was restored from a backup and holds 3 executions of 1 task, which may have run since: the agent of web1 says so',
  ],
  [
    'a server restored from a backup without held executions is a note',
    {
      status: {
        version: '1.2.0',
        serverTime: '2026-03-02T09:30:20.000Z',
        startedAt: '2026-03-02T09:30:00.000Z',
        run: { run: 'r', sequence: 7 },
        restore: {
          noticedAt: '2026-03-02T09:30:10.000Z',
          reason: 'the agent of web1 says so',
          hostId: 1,
          agentId: 'agent-web1',
          tasks: 0,
          executions: 0,
        },
        clock: null,
      },
    },
    'note restored: it was restored from a backup and holds no executions: the agent of web1 says so',
  ],
  [
    'A03 a jump of the clock is a warning',
    {
      status: {
        version: '1.2.0',
        serverTime: '2026-03-02T09:30:20.000Z',
        startedAt: '2026-03-02T09:30:00.000Z',
        run: { run: 'r', sequence: 7 },
        restore: null,
        clock: { aheadSeconds: 40 * 86_400, agreesInSeconds: 7200 },
      },
    },
    'warning clock-jumped: the clock is 40 days ahead of what it should show: old data is not removed until the clock has run steadily for 2 hours, or `rsm server confirm-clock` confirms it',
  ],
  [
    'a certificate that expires soon is a warning',
    { certificateEnds: now + 12.5 * day },
    'warning certificate: its certificate expires in 12 days',
  ],
  [
    'a certificate that expires very soon is an error',
    { certificateEnds: now + 3 * day },
    'error certificate: its certificate expires in 3 days',
  ],
  [
    'an expired certificate is an error',
    { certificateEnds: now - day },
    'error certificate: its certificate has expired',
  ],
  [
    'plain HTTP over a network is a warning',
    { url: 'http://rsm.example.org:18080', certificateEnds: null },
    'warning plain-http: tokens and output travel in the clear',
  ],
  ...['127.0.0.1:18080', '127.1:18080/rsm', 'localhost', '[::1]:18080'].map(
    (host) =>
      [
        `plain HTTP to this machine gives no finding: ${host}`,
        { url: `http://${host}`, certificateEnds: null },
        '',
      ] as const,
  ),
  ...['localhost.example.com', '127.evil.example', '127.0.0.1.evil.example:80'].map(
    (host) =>
      [
        `plain HTTP to another machine is a warning: ${host}`,
        { url: `http://${host}`, certificateEnds: null },
        'warning plain-http: tokens and output travel in the clear',
      ] as const,
  ),
]

for (const [title, change, found] of cases)
  test(title, (t) => {
    const { findings } = examineServer({ ...well, ...change })
    t.is(findings.map(({ severity, code, message }) => `${severity} ${code}: ${message}`).join('\n'), found)
  })
