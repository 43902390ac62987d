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
  /** Absent if the password alone is enough. */
  totp?: Totp
  lastLoginAt: string | null
  createdAt: string
  updatedAt: string
}

/** Second factor: codes of an authenticator app (contract §2). */
export interface Totp {
  /** Sealed base32. */
  secret: string
  /** False until a code was confirmed. */
  isOn: boolean
  /** Newest step whose code was used; it and earlier ones are refused (RFC 6238 §5.2). */
  lastStep: number
  /** Digests of the unused recovery codes. */
  recovery: string[]
}

/** Login session or personal access token; the server knows only its hash. */
export interface TokenRecord {
  id: number
  kind: 'session' | 'personal'
  name: string | null
  tokenHash: string
  userId: number
  role: Role
  /** Personal: may write users, enrollment tokens, webhooks. Absent in old records: it may not. */
  admin?: boolean
  /**
   * Sessions: client address and `User-Agent` at login, cut to a line. Absent in records of older servers.
   */
  address?: string
  userAgent?: string
  createdAt: string
  lastUsedAt: string
  expiresAt: string
}
