import type { AuthType, SystemInfo } from '../../../core/hosts/host.ts'
import type { Sealed } from '../ports/keys.ts'

export interface HostRecord {
  id: number
  hostname: string
  ip: string
  sshPort: number
  authType: AuthType
  username: string | null
  password: Sealed | null
  privateKey: Sealed | null
  /** Absent in records of older servers. */
  hostKey?: string | null
  tags: Record<string, string>
  systemInfo: SystemInfo | null
  agent: {
    agentId: string
    agentVersion: string
    registeredAt: string
    /** SHA-256 of the agent's token, hex; null once revoked. */
    tokenHash: string | null
    /** Whether the token has ever been shown to us: until then a lost reply may be repeated (contract §3). */
    tokenUsed: boolean
    enrollmentId: number | null
    /** When its token was revoked. Absent while it is good, and in records of older servers: those come back by `hosts join --replace` only. */
    revokedAt?: string
  } | null
  createdAt: string
  updatedAt: string
}

export interface ClusterRecord {
  id: number
  name: string
  description: string
  /** Members of a static cluster; empty for a dynamic one. */
  hostIds: number[]
  selector: string | null
  createdAt: string
  updatedAt: string
}

export interface EnrollmentRecord {
  id: number
  name: string | null
  tokenHash: string
  maxUses: number
  uses: number
  tags: Record<string, string>
  clusterId: number | null
  hostId: number | null
  createdBy: string
  createdAt: string
  expiresAt: string
}

/**
 * An agent that was removed or revoked, and so is not let in by the enrollment tokens of that moment (contract §3). It
 * goes when none of them is open.
 */
export interface TombstoneRecord {
  /** The agentId. */
  id: string
  state: 'removed' | 'revoked'
  hostId: number
  hostname: string
  /** The highest id that an enrollment token had then. */
  enrollmentId: number
  createdAt: string
}
