import { rights, roles } from '../../permissions.ts'
import { Closed, Id, Line, Nullable, named, paging, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

export const Role = Type.Enum([...roles])
const Rights = Type.Array(Type.Enum([...rights]), { uniqueItems: true, maxItems: rights.length })
const Email = Type.String({
  maxLength: 254,
  pattern: '^[^@\\s]+@[^@\\s]+$',
  description: 'an e-mail address, like "ops@example.org"',
})
const Password = Type.String({ minLength: 8, maxLength: 1024 })
const Username = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[A-Za-z0-9._@-]*$',
  description: 'made of letters, digits and . _ @ -',
  format: 'not-blank',
})

/** Six digits of the app; or a recovery code, where logins take codes already. */
const Code = Type.String({ minLength: 6, maxLength: 32 })

export const UserCreate = Closed(
  {
    username: Username,
    password: Password,
    role: Role,
    /** What the user may do beside what the role says; to set them takes an ADMIN's session. */
    rights: Type.Optional(Rights),
    email: Type.Optional(Email),
  },
  {
    examples: [
      { username: 'maria', password: 'correct horse battery', role: 'OPERATOR', rights: ['hosts:remove'] },
    ],
  },
)
export type UserCreate = Static<typeof UserCreate>

export const UserPatch = Closed(
  {
    username: Type.Optional(Username),
    password: Type.Optional(Password),
    role: Type.Optional(Role),
    rights: Type.Optional(Rights),
    email: Type.Optional(Nullable(Email)),
    enabled: Type.Optional(Type.Boolean()),
    /** Logins of a user who has lost the app take the password alone again; only the user turns codes on. */
    totp: Type.Optional(Type.Literal(false)),
  },
  { examples: [{ role: 'VIEWER', rights: [], email: null }] },
)
export type UserPatch = Static<typeof UserPatch>

export const UserQuery = Closed({
  ...paging,
  ...named,
  search: Type.Optional(Type.String({ maxLength: 64 })),
})
export type UserQuery = Static<typeof UserQuery>

export const User = Type.Object({
  id: Id,
  username: Type.String(),
  role: Role,
  rights: Rights,
  email: Nullable(Type.String()),
  enabled: Type.Boolean(),
  /** Whether logins take a code of an authenticator app, too. */
  totp: Type.Boolean(),
  lastLoginAt: Nullable(Time),
  createdAt: Time,
  updatedAt: Time,
})
export type User = Static<typeof User>

/** The user whom a token stands for, and the token: what it may do is bounded by its own role. */
export const Me = Type.Object({
  ...User.properties,
  token: Type.Object({
    kind: Type.Enum(['session', 'personal']),
    name: Nullable(Type.String()),
    role: Role,
    /** Whether it may write users, enrollment tokens and webhooks. */
    admin: Type.Boolean(),
    expiresAt: Time,
  }),
})
export type Me = Static<typeof Me>

export const PasswordChange = Closed(
  {
    currentPassword: Type.String({ minLength: 1, maxLength: 1024 }),
    newPassword: Password,
  },
  { examples: [{ currentPassword: 'correct horse battery', newPassword: 'staple of another kind' }] },
)
export type PasswordChange = Static<typeof PasswordChange>

export const LoginRequest = Closed(
  {
    username: Line(64),
    password: Type.String({ minLength: 1, maxLength: 1024 }),
    /** Of the user's authenticator app, or a recovery code: a 401 names this field where it is asked for. */
    code: Type.Optional(Code),
  },
  { examples: [{ username: 'maria', password: 'correct horse battery' }] },
)
export type LoginRequest = Static<typeof LoginRequest>

export const LoginResult = Type.Object({
  token: Type.String(),
  expiresAt: Time,
  user: Type.Object({ id: Id, username: Type.String(), role: Role }),
})
export type LoginResult = Static<typeof LoginResult>

export const TotpCreate = Closed(
  { currentPassword: Type.String({ minLength: 1, maxLength: 1024 }) },
  { examples: [{ currentPassword: 'correct horse battery' }] },
)
export type TotpCreate = Static<typeof TotpCreate>

/** What an authenticator app takes: the secret as base32, or the URI as a QR code. Shown this once. */
export const TotpCreated = Type.Object({ secret: Type.String(), uri: Type.String() })
export type TotpCreated = Static<typeof TotpCreated>

export const TotpConfirm = Closed({ code: Code }, { examples: [{ code: '492039' }] })
export type TotpConfirm = Static<typeof TotpConfirm>

/** Each stands in for a code once; shown only once. */
export const TotpConfirmed = Type.Object({ recoveryCodes: Type.Array(Type.String()) })
export type TotpConfirmed = Static<typeof TotpConfirmed>

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
