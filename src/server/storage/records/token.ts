import type { Role } from '../../../core/permissions.ts'

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
