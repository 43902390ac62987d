export const hostStatuses = ['ONLINE', 'OFFLINE', 'WARNING'] as const
export type HostStatus = (typeof hostStatuses)[number]

export const agentStatuses = ['HEALTHY', 'DEGRADED', 'UNHEALTHY'] as const
export type AgentStatus = (typeof agentStatuses)[number]

/** How others log in to a host; rsm itself never does. */
export const authTypes = ['PASSWORD', 'PRIVATE_KEY', 'NONE'] as const
export type AuthType = (typeof authTypes)[number]

export const sandboxModes = ['none', 'user', 'strict'] as const
export type SandboxMode = (typeof sandboxModes)[number]

/** How an agent holds the processes of a script together, and so what the end of a tree can be sure of. */
export const containments = ['cgroup', 'pid-namespace', 'process-group'] as const
export type Containment = (typeof containments)[number]
