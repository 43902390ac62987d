import type { Host } from '../../../src/core/protocol/http/hosts.ts'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'

const at = '2026-03-02T09:30:00.000Z'

export const systemInfo = {
  os: 'linux',
  distribution: 'Debian GNU/Linux 12 (bookworm)',
  kernel: '6.1.0-28-amd64',
  arch: 'x64',
  cpuCores: 4,
  memoryMB: 7972,
  diskGB: 98.3,
  ipAddresses: ['10.0.0.11'],
}

export const metrics = {
  timestamp: at,
  cpu: { usagePercent: 12.5, loadAvg1m: 0.42, loadAvg5m: 0.38, loadAvg15m: 0.31 },
  memory: { totalMB: 7972, usedMB: 3120, availableMB: 4852, usagePercent: 39.1 },
  disk: [{ mountPoint: '/', totalGB: 98.3, usedGB: 41.7, usagePercent: 42.4, inodesPercent: 8.1 }],
  network: { rxBytesPerSec: 18_240, txBytesPerSec: 9120, connections: 37 },
}

/** The agent of a host without findings. */
export const healthyAgent: NonNullable<Host['agent']> = {
  agentId: 'agent-web1',
  agentVersion: '0.1.0',
  status: 'HEALTHY',
  uptime: 86_400,
  connected: true,
  reachable: true,
  linkLostAt: null,
  registeredAt: '2026-03-01T08:15:00.000Z',
  lastHeartbeatAt: at,
  runAs: 'deploy',
  runsAsRoot: false,
  sandbox: 'none',
  containment: 'cgroup',
  enforces: ['memoryMB', 'processes', 'cpuPercent'],
  terminal: true,
  terminalLack: null,
  onDemand: false,
  linkFault: null,
  statusReason: null,
  clockOffsetSeconds: 0.2,
}

/** A host without findings. */
export const healthyHost: Host = {
  id: 7,
  hostname: 'web1',
  ip: '10.0.0.11',
  sshPort: 22,
  authType: 'NONE',
  username: null,
  hostKey: null,
  tags: { env: 'production', role: 'web' },
  status: 'ONLINE',
  statusReason: null,
  clusterIds: [2],
  systemInfo,
  agent: healthyAgent,
  metrics,
  createdAt: '2026-03-01T08:14:00.000Z',
  updatedAt: '2026-03-01T08:15:00.000Z',
}

/** A task that succeeded on one host. */
export const endedTask: Task = {
  taskId: '01JNZ8Q3V5K7M9P2R4T6W8Y0AB',
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
  limits: null,
  verify: null,
  rollback: null,
  copy: null,
  fetch: null,
  stdin: null,
  limitRate: null,
  clusterId: null,
  retryOf: null,
  createdBy: 'admin',
  createdAt: at,
  startedAt: at,
  completedAt: at,
  duration: 1250,
  params: {},
  results: [],
}

export const succeeded: Task['results'][number] = {
  hostId: 7,
  hostname: 'web1',
  status: 'SUCCESS',
  exitCode: 0,
  signal: null,
  startedAt: at,
  completedAt: at,
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
  verify: null,
  rollback: null,
  lateResult: null,
}
