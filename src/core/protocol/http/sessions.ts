import { Id, Nullable, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

/** A login of one's own that still lasts (contract §2). */
export const Session = Type.Object({
  id: Id,
  /** The one that makes this call. */
  current: Type.Boolean(),
  /** Where it was logged in from, and the `User-Agent` of that call; null where that is not known. */
  address: Nullable(Type.String()),
  userAgent: Nullable(Type.String()),
  createdAt: Time,
  lastUsedAt: Time,
  /** When it ends unless it is used before. */
  expiresAt: Time,
})
export type Session = Static<typeof Session>

/** How many sessions were ended. */
export const SessionsEnded = Type.Object({ ended: Type.Integer({ minimum: 0 }) })
export type SessionsEnded = Static<typeof SessionsEnded>
