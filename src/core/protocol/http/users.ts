import { rights, roles } from '../../permissions.ts'
import { Closed, Id, Line, Nullable, named, paging, type Static, Time, Type } from './common.ts'

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

/** Six digits from the app, or a recovery code if logins already require codes. */
const Code = Type.String({ minLength: 6, maxLength: 32 })

export const UserCreate = Closed(
  {
    username: Username,
    password: Password,
    role: Role,
    /** Rights beyond those of the role; setting them requires an ADMIN's session. */
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
    /** Turns codes off for a user who lost the app; only the user can turn them on. */
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
  /** Whether logins also require a code from an authenticator app. */
  totp: Type.Boolean(),
  lastLoginAt: Nullable(Time),
  createdAt: Time,
  updatedAt: Time,
})
export type User = Static<typeof User>

/** User of a token, and the token: its own role limits what it may do. */
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
    /** Code from the user's authenticator app, or a recovery code; a 401 names this field if one is required. */
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

/** Secret for an authenticator app, as base32, and as a URI for a QR code. Shown only once. */
export const TotpCreated = Type.Object({ secret: Type.String(), uri: Type.String() })
export type TotpCreated = Static<typeof TotpCreated>

export const TotpConfirm = Closed({ code: Code }, { examples: [{ code: '492039' }] })
export type TotpConfirm = Static<typeof TotpConfirm>

/** Each recovery code replaces one code, once; shown only once. */
export const TotpConfirmed = Type.Object({ recoveryCodes: Type.Array(Type.String()) })
export type TotpConfirmed = Static<typeof TotpConfirmed>

/** An active login of the calling user (contract §2). */
export const Session = Type.Object({
  id: Id,
  current: Type.Boolean(),
  /** Client address and `User-Agent` of the login; null if unknown. */
  address: Nullable(Type.String()),
  userAgent: Nullable(Type.String()),
  createdAt: Time,
  lastUsedAt: Time,
  /** End of the session if it is not used before. */
  expiresAt: Time,
})
export type Session = Static<typeof Session>

export const SessionsEnded = Type.Object({ ended: Type.Integer({ minimum: 0 }) })
export type SessionsEnded = Static<typeof SessionsEnded>

/** Default lifetime of a personal access token, in days (contract §2). */
export const defaultTokenDays = 90

export const TokenCreate = Closed(
  {
    name: Line(128),
    role: Type.Optional(Role),
    /** For role ADMIN: whether it may write users, enrollment tokens and webhooks, which outlive it. */
    admin: Type.Optional(Type.Boolean()),
    expiresInDays: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 3660 })),
  },
  { examples: [{ name: 'pipeline', role: 'OPERATOR', expiresInDays: 90 }] },
)
export type TokenCreate = Static<typeof TokenCreate>

/** A personal access token, for pipelines; its text is shown only once, when it is created. */
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
