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
    /** Whether the token was ever presented: until then a lost reply may be repeated (contract §3). */
    tokenUsed: boolean
    enrollmentId: number | null
    /**
     * When its token was revoked. Absent while the token is valid, and in records of older servers: their
     * agents return by `hosts join --replace` only.
     */
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
 * Agent that was removed or revoked, so that the enrollment tokens of that moment do not admit it (contract
 * §3). Deleted once none of them is valid.
 */
export interface TombstoneRecord {
  /** The agentId. */
  id: string
  state: 'removed' | 'revoked'
  hostId: number
  hostname: string
  /** Highest id of an enrollment token at that moment. */
  enrollmentId: number
  createdAt: string
}
