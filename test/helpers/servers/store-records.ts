import type { ClusterRecord, HostRecord } from '../../../src/server/storage/records/host.ts'
import type { ScheduleRecord } from '../../../src/server/storage/records/schedule.ts'
import type { ScriptRecord } from '../../../src/server/storage/records/script.ts'
import type { ExecutionRecord, TaskRecord } from '../../../src/server/storage/records/task.ts'
import type { TerminalRecord } from '../../../src/server/storage/records/terminal.ts'
import type { TokenRecord, UserRecord } from '../../../src/server/storage/records/user.ts'

const at = '2026-01-01T00:00:00.000Z'

export function host(id: number, hostname: string, more: Partial<HostRecord> = {}): HostRecord {
  return {
    id,
    hostname,
    ip: '10.0.0.1',
    sshPort: 22,
    authType: 'NONE',
    username: null,
    password: null,
    privateKey: null,
    tags: {},
    systemInfo: null,
    agent: null,
    createdAt: at,
    updatedAt: at,
    ...more,
  }
}

export function cluster(id: number, name: string, more: Partial<ClusterRecord> = {}): ClusterRecord {
  return { id, name, description: '', hostIds: [], selector: null, createdAt: at, updatedAt: at, ...more }
}

export function script(id: number, name: string, more: Partial<ScriptRecord> = {}): ScriptRecord {
  return {
    id,
    name,
    description: '',
    type: 'BASH',
    content: 'true',
    timeout: null,
    tags: [],
    category: null,
    version: 1,
    sha256: '',
    createdBy: 'admin',
    createdAt: at,
    updatedAt: at,
    ...more,
  }
}

export function schedule(id: number, name: string, more: Partial<ScheduleRecord> = {}): ScheduleRecord {
  return {
    id,
    name,
    cron: null,
    everySeconds: 3600,
    at: null,
    timezone: 'UTC',
    from: null,
    until: null,
    jitterSeconds: 0,
    base: at,
    scriptId: null,
    script: null,
    copy: null,
    target: { selector: '@*' },
    options: {},
    secretParams: null,
    secretParamNames: [],
    enabled: true,
    overlap: 'SKIP',
    missed: 'ONCE',
    missedWithinSeconds: 3600,
    ownerId: 1,
    owner: 'admin',
    tokenId: null,
    role: 'ADMIN',
    cursor: at,
    queued: null,
    dueAt: null,
    suspended: null,
    lastRun: null,
    revision: 0,
    createdAt: at,
    updatedAt: at,
    ...more,
  }
}

export function user(id: number, username: string): UserRecord {
  return {
    id,
    username,
    role: 'VIEWER',
    email: null,
    enabled: true,
    passwordHash: '',
    lastLoginAt: null,
    createdAt: at,
    updatedAt: at,
  }
}

export function token(id: number, userId: number): TokenRecord {
  return {
    id,
    kind: 'session',
    name: null,
    tokenHash: `hash-${id}`,
    userId,
    role: 'VIEWER',
    createdAt: at,
    lastUsedAt: at,
    expiresAt: at,
  }
}

export function task(id: string, more: Partial<TaskRecord> = {}): TaskRecord {
  return {
    id,
    status: 'RUNNING',
    hostCount: 1,
    counts: null,
    strategy: 'PARALLEL',
    batchSize: null,
    concurrency: null,
    maxFailures: null,
    pauseSeconds: 0,
    queueSeconds: null,
    scriptId: null,
    scriptVersion: null,
    scriptName: null,
    type: 'BASH',
    content: 'true',
    params: {},
    secretParams: null,
    timeout: 300,
    workDir: null,
    runAs: null,
    maxOutputBytes: 64 * 1024 * 1024,
    clusterId: null,
    retryOf: null,
    createdBy: 'admin',
    createdById: 1,
    createdAt: at,
    startedAt: at,
    completedAt: null,
    duration: null,
    cancelRequestedAt: null,
    pauseUntil: null,
    ...more,
  }
}

export function execution(taskId: string, hostId: number): ExecutionRecord {
  return {
    id: `${taskId}/${hostId}`,
    taskId,
    hostId,
    hostname: `web${hostId}`,
    position: hostId,
    status: 'PENDING',
    dueAt: null,
    sentAt: null,
    agentStoreId: null,
    named: false,
    cancelRequested: false,
    exitCode: null,
    signal: null,
    startedAt: null,
    completedAt: null,
    duration: null,
    stdoutBytes: 0,
    stderrBytes: 0,
    truncated: false,
    outputComplete: true,
    error: null,
    lateResult: null,
  }
}

/** An open, recorded session. */
export function terminal(id: string, more: Partial<TerminalRecord> = {}): TerminalRecord {
  return {
    id,
    hostId: 1,
    hostname: 'web1',
    agentId: 'a1',
    user: 'admin',
    userId: 1,
    tokenId: 1,
    status: 'OPEN',
    cols: 80,
    rows: 24,
    runAs: null,
    shell: null,
    term: null,
    command: null,
    noStdin: false,
    startedAt: at,
    endedAt: null,
    exitCode: null,
    signal: null,
    reason: null,
    recorded: true,
    recordingBytes: 0,
    ...more,
  }
}
