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
