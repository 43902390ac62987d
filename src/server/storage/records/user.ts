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
  /** Absent where the password alone is enough. */
  totp?: Totp
  lastLoginAt: string | null
  createdAt: string
  updatedAt: string
}

/** Codes of an authenticator app beside the password (contract §2). */
export interface Totp {
  /** Sealed base32. */
  secret: string
  /** Not before a code of it was confirmed. */
  isOn: boolean
  /** The newest step whose code was used, and none before it is taken any more (RFC 6238 §5.2). */
  lastStep: number
  /** Digests of the recovery codes that are left. */
  recovery: string[]
}

/** A login session or a personal access token: opaque to its holder, a hash to us. */
export interface TokenRecord {
  id: number
  kind: 'session' | 'personal'
  name: string | null
  tokenHash: string
  userId: number
  role: Role
  /** Of a personal one: whether it may write users, enrollment tokens and webhooks. Absent in records of older servers: it may not. */
  admin?: boolean
  /** Of a session: the address that logged in, and the `User-Agent` it sent, cut to a line. Absent in records of older servers. */
  address?: string
  userAgent?: string
  createdAt: string
  lastUsedAt: string
  expiresAt: string
}
