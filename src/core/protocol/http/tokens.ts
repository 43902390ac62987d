import { Closed, Id, Line, Nullable, Time } from './common.ts'
import { type Static, Type } from './schema.ts'
import { Role } from './users.ts'

/** Days that a personal access token lives if nothing is said (contract §2). */
export const defaultTokenDays = 90

export const TokenCreate = Closed(
  {
    name: Line(128),
    role: Type.Optional(Role),
    /** Of role ADMIN: whether it may write users, enrollment tokens and webhooks, which outlast it. */
    admin: Type.Optional(Type.Boolean()),
    expiresInDays: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 3660 })),
  },
  { examples: [{ name: 'pipeline', role: 'OPERATOR', expiresInDays: 90 }] },
)
export type TokenCreate = Static<typeof TokenCreate>

/** A personal access token, for pipelines; its text is shown once, when it is made. */
export const Token = Type.Object({
  id: Id,
  name: Nullable(Type.String()),
  role: Role,
  /** Whether it may write users, enrollment tokens and webhooks. */
  admin: Type.Boolean(),
  createdAt: Time,
  lastUsedAt: Time,
  expiresAt: Time,
})
export type Token = Static<typeof Token>

export const TokenCreated = Type.Object({ ...Token.properties, token: Type.String() })
export type TokenCreated = Static<typeof TokenCreated>
