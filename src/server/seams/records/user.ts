import type { Right, Role } from '../../../core/permissions.ts'

export interface UserRecord {
  id: number
  username: string
  role: Role
  /** Absent in records of older servers: none. */
  rights?: Right[]
  email: string | null
  enabled: boolean
  /** `scrypt$N$r$p$salt$hash`. */
  passwordHash: string
  lastLoginAt: string | null
  createdAt: string
  updatedAt: string
}
