/** Examples of scripts, tasks and terminals; see fleet-examples.ts. */

export const taskId = '01JNZ8Q3V5K7M9P2R4T6W8Y0AB'
const content = `#!/usr/bin/env bash
# rsm: param UNIT required pattern="[a-z0-9-]+" "the service"
set -eu
systemctl restart "$UNIT"
echo "restarted $UNIT"
`
const sha256 = '054a11457c2c9709c1de73d6b0982784eb000590a09f43871f574459809a31fa'

const verifying = 'curl -fsS localhost:8000/health'
const verifyingSha256 = 'c855e7fe63c7e7da6ef0f07e9c4323ffc3337da168c244adac3ac28e1d8bac09'

export const scriptCreate = {
  name: 'deploy',
  description: 'Restarts a service',
  type: 'BASH',
  content,
  timeout: 120,
  tags: ['web'],
  category: 'release',
}

export const scriptPatch = { timeout: 300, category: null }

export const script = {
  id: 5,
  ...scriptCreate,
  params: [
    {
      name: 'UNIT',
      required: true,
      default: null,
      description: 'the service',
      secret: false,
      pattern: '[a-z0-9-]+',
    },
  ],
  version: 3,
  sha256,
  createdBy: 'admin',
  createdAt: '2026-03-01T08:00:00.000Z',
  updatedAt: '2026-03-02T08:00:00.000Z',
}

const { content: _content, params: _params, ...headOfScript } = script
export const scriptSummary = { ...headOfScript, bytes: 139 }

export const scriptVersionSummary = {
  version: 3,
  name: 'deploy',
  type: 'BASH',
  sha256,
  bytes: 139,
  changedBy: 'admin',
  changedAt: '2026-03-02T08:00:00.000Z',
}

export const scriptVersion = { ...script, changedBy: 'admin' }

export const scriptExecute = {
  hostIds: [7, 8],
  params: { UNIT: 'nginx' },
  strategy: 'ROLLING',
  batchSize: '25%',
}

export const clusterExecute = {
  scriptId: 5,
  params: { UNIT: 'nginx' },
  strategy: 'ROLLING',
  batchSize: [1, '10%', '50%'],
}

export const taskCreate = {
  script: { type: 'BASH', content: 'uptime' },
  target: { selector: 'web[1-20]' },
  timeout: 30,
  limits: { memoryMB: 512, processes: 100, cpuPercent: 50 },
}

export const hostInstall = { sudo: true, forgetCredentials: true }

const fileId = '01JNZ8Q3V5K7M9P2R4T6W8Y0FL'
export const file = {
  fileId,
  name: 'app.conf',
  size: 139,
  offset: 139,
  sha256,
  isComplete: true,
  isSecret: false,
  createdAt: '2026-03-02T09:30:00.000Z',
  expiresAt: '2026-03-03T09:30:00.000Z',
}

export const taskFile = {
  hostId: 7,
  hostname: 'web1',
  path: '/var/log/app.log',
  kind: 'FILE',
  size: 139,
  sha256,
}

export const taskRetry = { async: false }

export const started = { taskId, status: 'RUNNING', hostCount: 2, replayedAfterSeconds: null }

export const taskResult = {
  hostId: 7,
  hostname: 'web1',
  status: 'SUCCESS',
  exitCode: 0,
  signal: null,
  startedAt: '2026-03-02T09:30:12.510Z',
  completedAt: '2026-03-02T09:30:13.730Z',
  duration: 1220,
  stdoutBytes: 16,
  stderrBytes: 0,
  truncated: false,
  outputComplete: true,
  error: null,
  containment: 'cgroup',
  survivors: [],
  changed: null,
  phase: null,
  verify: { status: 'SUCCESS', exitCode: 0, attempts: 2 },
  rollback: null,
  lateResult: null,
}

export const logPage = {
  taskId,
  entries: [
    {
      id: 131,
      hostId: 7,
      hostname: 'web1',
      stream: 'stdout',
      sequence: 0,
      timestamp: '2026-03-02T09:30:12.640Z',
      data: 'restarted nginx\n',
    },
  ],
  next: 131,
  previous: 0,
}

export const taskScript = {
  taskId,
  scriptId: 5,
  scriptVersion: 3,
  scriptName: 'deploy',
  type: 'BASH',
  content,
  sha256,
  params: { UNIT: 'nginx' },
  secretParams: [],
  verify: { type: 'BASH', content: verifying, sha256: verifyingSha256 },
  rollback: null,
}

const scheduled = {
  name: 'nightly',
  scriptId: 5,
  target: { clusterId: 2 },
  params: { UNIT: 'nginx' },
  strategy: 'ROLLING',
  timezone: 'Europe/Berlin',
}

export const scheduleCreate = { ...scheduled, cron: '30 3 * * 1-5' }

export const schedulePatch = { cron: '0 4 * * *', jitterSeconds: 300, until: null }

export const schedule = {
  id: 3,
  ...scheduleCreate,
  everySeconds: null,
  at: null,
  script: null,
  copy: null,
  secretParams: ['TOKEN'],
  enabled: true,
  overlap: 'SKIP',
  missed: 'ONCE',
  missedWithinSeconds: 3600,
  jitterSeconds: 0,
  from: null,
  until: null,
  nextAt: '2026-03-03T02:30:00.000Z',
  lastTask: { taskId, status: 'SUCCESS', at: '2026-03-02T02:30:00.000Z' },
  suspended: null,
  owner: 'admin',
  createdAt: '2026-03-01T08:00:00.000Z',
  updatedAt: '2026-03-01T08:00:00.000Z',
}

const { params: _values, ...headOfSchedule } = schedule
export const scheduleSummary = headOfSchedule

export const scheduleSlot = {
  plannedAt: '2026-03-02T02:30:00.000Z',
  firstAt: '2026-03-02T02:30:00.000Z',
  count: 1,
  at: '2026-03-02T02:30:00.012Z',
  outcome: 'STARTED',
  why: null,
  error: null,
  taskId,
  by: null,
}

export const scheduleTimes = { next: ['2026-03-03T02:30:00.000Z', '2026-03-04T02:30:00.000Z'] }

export const taskSummary = {
  taskId,
  status: 'SUCCESS',
  hostCount: 1,
  counts: {
    PENDING: 0,
    RUNNING: 0,
    SUCCESS: 1,
    FAILED: 0,
    TIMEOUT: 0,
    CANCELLED: 0,
    SKIPPED: 0,
    UNREACHABLE: 0,
    LOST: 0,
  },
  strategy: 'PARALLEL',
  batchSize: null,
  scriptId: 5,
  scriptVersion: 3,
  scriptName: 'deploy',
  firstLine: null,
  type: 'BASH',
  timeout: 120,
  runAs: null,
  limits: { memoryMB: 512 },
  verify: {
    scriptId: null,
    scriptVersion: null,
    scriptName: null,
    firstLine: 'curl -fsS localhost:8000/health',
    type: 'BASH',
    timeout: 10,
    retries: 5,
    intervalSeconds: 2,
  },
  rollback: null,
  copy: null,
  fetch: null,
  stdin: null,
  limitRate: null,
  transfer: null,
  clusterId: null,
  retryOf: null,
  scheduleId: 3,
  plannedAt: '2026-03-02T09:30:00.000Z',
  createdBy: 'admin',
  createdAt: '2026-03-02T09:30:12.480Z',
  startedAt: '2026-03-02T09:30:12.510Z',
  completedAt: '2026-03-02T09:30:13.730Z',
  duration: 1250,
}

export const task = { ...taskSummary, params: { UNIT: 'nginx' }, server: null, results: [taskResult] }

export const terminalCreate = { hostId: 7, cols: 120, rows: 40 }

const sessionId = '01JNZ8Q3V5K7M9P2R4T6W8Y0AC'

export const terminalTicket = {
  ticket: 'rsm_tkt_2mVxT7cRzN4wYbJ8sLhD5fGaE1uK3oXiQ6tWvMe9kPq',
  path: `/ws/terminal/${sessionId}`,
  expiresAt: '2026-03-02T09:30:42.480Z',
}

export const terminalCreated = { sessionId, ...terminalTicket }

export const terminal = {
  sessionId,
  hostId: 7,
  hostname: 'web1',
  user: 'admin',
  status: 'CLOSED',
  cols: 120,
  rows: 40,
  runAs: null,
  shell: null,
  command: null,
  startedAt: '2026-03-02T09:30:12.480Z',
  endedAt: '2026-03-02T09:41:55.120Z',
  exitCode: 0,
  signal: null,
  reason: null,
  recorded: true,
  recordingBytes: 48213,
  watchers: [],
}
