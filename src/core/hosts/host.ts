export const hostStatuses = ['ONLINE', 'OFFLINE', 'WARNING'] as const
export type HostStatus = (typeof hostStatuses)[number]

export const agentStatuses = ['HEALTHY', 'DEGRADED', 'UNHEALTHY'] as const
export type AgentStatus = (typeof agentStatuses)[number]

/** How the server logs in to a host to install its agent. */
export const authTypes = ['PASSWORD', 'PRIVATE_KEY', 'NONE'] as const
export type AuthType = (typeof authTypes)[number]

export const sandboxModes = ['none', 'user', 'strict'] as const
export type SandboxMode = (typeof sandboxModes)[number]

/** How an agent holds the processes of a script together, and so what the end of a tree can be sure of. */
export const containments = ['cgroup', 'pid-namespace', 'process-group'] as const
export type Containment = (typeof containments)[number]

/** The facts that the agent last reported. */
export interface SystemInfo {
  os: string
  /** As PRETTY_NAME of os-release(5) has it; absent if the agent has not reported it. */
  distribution?: string
  kernel: string
  arch: string
  cpuCores: number
  memoryMB: number
  diskGB: number
  ipAddresses: string[]
}

/** What a host does at one moment, as its agent measures it. */
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
