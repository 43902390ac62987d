/**
 * Examples for the API's own document: each is named after its schema, and all tell of the same few things. A test holds
 * each against the schema that validates.
 */

import { hostAgent } from './host-agent.ts'
import { taskId } from './work-examples.ts'

export const hostCreate = { hostname: 'web1', ip: '10.0.0.11', tags: { env: 'production', role: 'web' } }

export const hostPatch = { ip: '10.0.0.12', tags: { role: null } }

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
  timestamp: '2026-03-02T09:30:00.000Z',
  cpu: { usagePercent: 12.5, loadAvg1m: 0.42, loadAvg5m: 0.38, loadAvg15m: 0.31 },
  memory: { totalMB: 7972, usedMB: 3120, availableMB: 4852, usagePercent: 39.1 },
  disk: [{ mountPoint: '/', totalGB: 98.3, usedGB: 41.7, usagePercent: 42.4, inodesPercent: 8.1 }],
  network: { rxBytesPerSec: 18_240, txBytesPerSec: 9120, connections: 37 },
}

export const hostMetrics = {
  hostId: 7,
  from: '2026-03-01T09:30:00.000Z',
  to: '2026-03-02T09:30:00.000Z',
  samples: [metrics],
}

export const host = {
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
  agent: hostAgent,
  metrics,
  createdAt: '2026-03-01T08:14:00.000Z',
  updatedAt: '2026-03-01T08:15:00.000Z',
}

export const enrollmentCreate = {
  name: 'web servers',
  maxUses: 20,
  expiresInHours: 24,
  tags: { role: 'web' },
  clusterId: 2,
}

export const enrollment = {
  id: 3,
  name: 'web servers',
  maxUses: 20,
  tags: { role: 'web' },
  clusterId: 2,
  uses: 0,
  hostId: null,
  createdBy: 'admin',
  createdAt: '2026-03-01T08:00:00.000Z',
  expiresAt: '2026-03-02T08:00:00.000Z',
}

export const openEnrollment = {
  id: 3,
  name: 'web servers',
  maxUses: 20,
  uses: 9,
  expiresAt: '2026-03-02T08:00:00.000Z',
}

export const enrollmentCreated = {
  ...enrollment,
  token: 'rsm_enr_9kPq2mVxT7cRzN4wYbJ8sLhD5fGaE1uK3oXiQ6tWvMe',
  join: 'rsm-join:eyJ2IjoxLCJ1cmwiOiJodHRwczovL3JzbS5leGFtcGxlLm9yZyIsInRva2VuIjoicnNtX2Vucl85a1BxMm1WeFQ3Y1J6TjR3WWJKOHNMaEQ1ZkdhRTF1SzNvWGlRNnRXdk1lIn0',
  line: ' RSM_AGENT_ENROLL_TOKEN=rsm_enr_9kPq2mVxT7cRzN4wYbJ8sLhD5fGaE1uK3oXiQ6tWvMe rsm agent run --url https://rsm.example.org',
}

export const registerRequest = {
  agentId: 'agent-web1',
  hostname: 'web1',
  ...systemInfo,
  agentVersion: '0.1.0',
}

export const registerResult = {
  hostId: 7,
  token: 'rsm_agt_T7cRzN4wYbJ8sLhD5fGaE1uK3oXiQ6tWvMe9kPq2mVx',
  heartbeatInterval: 30,
  metricsInterval: 60,
  serverKey: 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=',
  keyId: '3b1f0c9a7d2e4f58',
  serverTime: '2026-03-01T08:15:00.000Z',
}

export const heartbeatRequest = {
  agentId: 'agent-web1',
  timestamp: '2026-03-02T09:30:12.480Z',
  status: 'HEALTHY',
  uptime: 86_400,
  onDemand: false,
  mark: { run: 'q3Zr0dBv6aXn1w', sequence: 4711, mac: '8sRIYRWnBjEb7DYHYTjkqOAHBVZjhq3ijqkUHKbFBSY' },
}

export const metricsRequest = { agentId: 'agent-web1', ...metrics }

export const agentAck = {
  serverTime: '2026-03-02T09:30:12.502Z',
  configVersion: 1,
  pendingTasks: 0,
  mark: { run: 'q3Zr0dBv6aXn1w', sequence: 4712, mac: '2DkS0t1Xb5XkQCj7ytyzpM6lzm6D4kEVvMFH3oVtu5o' },
}

export const agentConfig = {
  heartbeatInterval: 30,
  metricsInterval: 60,
  logLevel: 'INFO',
  configVersion: 1,
  pendingTasks: [{ taskId, type: 'EXECUTE_SCRIPT' }],
}

export const clusterCreate = { name: 'web', description: 'All web servers', selector: '@role:web' }

export const clusterPatch = { hostIds: [7, 8], selector: null }

export const cluster = {
  id: 2,
  name: 'web',
  description: 'All web servers',
  hostIds: [7, 8],
  selector: '@role:web',
  hostCount: 2,
  createdAt: '2026-03-01T08:00:00.000Z',
  updatedAt: '2026-03-01T08:00:00.000Z',
}

export const tokenCreate = { name: 'pipeline', role: 'OPERATOR', expiresInDays: 90 }

export const token = {
  id: 11,
  name: 'pipeline',
  role: 'OPERATOR',
  admin: false,
  createdAt: '2026-03-01T08:00:00.000Z',
  lastUsedAt: '2026-03-02T09:30:12.480Z',
  expiresAt: '2026-05-30T08:00:00.000Z',
}

export const tokenCreated = { ...token, token: 'rsm_pat_wYbJ8sLhD5fGaE1uK3oXiQ6tWvMe9kPq2mVxT7cRzN4' }

export const userCreate = {
  username: 'maria',
  password: 'correct horse battery',
  role: 'OPERATOR',
  rights: ['hosts:remove'],
  email: 'maria@example.org',
}

export const userPatch = { role: 'VIEWER', rights: [], email: null }

export const user = {
  id: 4,
  username: 'maria',
  role: 'OPERATOR',
  rights: ['hosts:remove'],
  email: 'maria@example.org',
  enabled: true,
  totp: false,
  lastLoginAt: '2026-03-02T09:12:44.000Z',
  createdAt: '2026-03-01T08:00:00.000Z',
  updatedAt: '2026-03-01T08:00:00.000Z',
}

export const me = {
  ...user,
  token: {
    kind: 'personal',
    name: 'nightly',
    role: 'OPERATOR',
    admin: false,
    expiresAt: '2026-05-31T08:00:00.000Z',
  },
}

export const passwordChange = {
  currentPassword: 'correct horse battery',
  newPassword: 'staple of another kind',
}

export const loginRequest = { username: 'maria', password: 'correct horse battery' }

export const loginResult = {
  token: 'rsm_ses_zN4wYbJ8sLhD5fGaE1uK3oXiQ6tWvMe9kPq2mVxT7cR',
  expiresAt: '2026-03-02T21:12:44.000Z',
  user: { id: 4, username: 'maria', role: 'OPERATOR' },
}

export const session = {
  id: 12,
  current: true,
  address: '192.0.2.7',
  userAgent: 'rsm',
  createdAt: '2026-03-02T09:12:44.000Z',
  lastUsedAt: '2026-03-02T10:30:00.000Z',
  expiresAt: '2026-03-02T22:30:00.000Z',
}

export const sessionsEnded = { ended: 2 }

export const totpCreate = { currentPassword: 'correct horse battery' }

export const totpCreated = {
  secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
  uri: 'otpauth://totp/rsm%20rsm.example.org:maria?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=rsm%20rsm.example.org',
}

export const totpConfirm = { code: '492039' }

export const totpConfirmed = { recoveryCodes: ['QK7RM-2XV4P', 'H3TZB-YN6DW'] }

export const auditEntry = {
  id: 42,
  at: '2026-03-02T09:30:12.480Z',
  actor: { type: 'user', id: 4, name: 'maria', tokenId: 11 },
  ip: '10.0.0.5',
  action: 'task.create',
  object: { type: 'task', id: taskId, name: 'deploy' },
  outcome: 'SUCCESS',
  detail: { hostCount: 2, strategy: 'ROLLING' },
  hash: 'b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c',
}
