import { rights, roles } from '../../permissions.ts'
import { Closed, Id, Line, Nullable, named, paging, Time } from './common.ts'
import { type Static, Type } from './schema.ts'
import { Code } from './totp.ts'

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
