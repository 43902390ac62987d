export const hostStatuses = ['ONLINE', 'OFFLINE', 'WARNING'] as const
export type HostStatus = (typeof hostStatuses)[number]

export const agentStatuses = ['HEALTHY', 'DEGRADED', 'UNHEALTHY'] as const
export type AgentStatus = (typeof agentStatuses)[number]

/** How the server logs in to a host to install its agent. */
export const authTypes = ['PASSWORD', 'PRIVATE_KEY', 'NONE'] as const
export type AuthType = (typeof authTypes)[number]

export const sandboxModes = ['none', 'user', 'strict'] as const
export type SandboxMode = (typeof sandboxModes)[number]

/** How an agent contains the processes of a script; decides whether ending it reaches all of them. */
export const containments = ['cgroup', 'pid-namespace', 'process-group'] as const
export type Containment = (typeof containments)[number]

export interface SystemInfo {
  os: string
  /** PRETTY_NAME of os-release(5); absent if the agent did not report it. */
  distribution?: string
  kernel: string
  arch: string
  cpuCores: number
  memoryMB: number
  diskGB: number
  ipAddresses: string[]
}

/** Load of a host at one moment, measured by its agent. */
export interface Metrics {
  timestamp: string
  cpu: { usagePercent: number; loadAvg1m: number; loadAvg5m: number; loadAvg15m: number }
  memory: { totalMB: number; usedMB: number; availableMB: number; usagePercent: number }
  disk: {
    mountPoint: string
    totalGB: number
    usedGB: number
    usagePercent: number
    /** Absent if the file system has no fixed number of inodes, and from older agents. */
    inodesPercent?: number
  }[]
  network: { rxBytesPerSec: number; txBytesPerSec: number; connections: number }
}
