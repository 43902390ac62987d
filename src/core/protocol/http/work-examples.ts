/** Examples of scripts, tasks and terminals; see fleet-examples.ts. */

export const taskId = '01JNZ8Q3V5K7M9P2R4T6W8Y0AB'
const content = `#!/usr/bin/env bash
# rsm: param UNIT required pattern="[a-z0-9-]+" "the service"
set -eu
systemctl restart "$UNIT"
echo "restarted $UNIT"
`
const sha256 = '054a11457c2c9709c1de73d6b0982784eb000590a09f43871f574459809a31fa'

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
}

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
  params: { UNIT: 'nginx' },
  timeout: 120,
  runAs: null,
  limits: { memoryMB: 512 },
  clusterId: null,
  retryOf: null,
  createdBy: 'admin',
  createdAt: '2026-03-02T09:30:12.480Z',
  startedAt: '2026-03-02T09:30:12.510Z',
  completedAt: '2026-03-02T09:30:13.730Z',
  duration: 1250,
}

export const task = { ...taskSummary, results: [taskResult] }

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
