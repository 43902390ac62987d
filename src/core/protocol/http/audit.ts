import { Closed, Nullable, paging, Time } from './common.ts'
import * as examples from './fleet-examples.ts'
import { type Static, Type } from './schema.ts'

/** How what was audited ended. */
export const auditOutcomes = ['SUCCESS', 'REFUSED', 'FAILED'] as const

const auditActors = ['user', 'agent', 'enrollment', 'system', 'anonymous'] as const
export const AuditOutcome = Type.Enum([...auditOutcomes])
export type AuditOutcome = Static<typeof AuditOutcome>

/** Who did it: an agent's `id` and `name` are its agentId; `tokenId` names a user's session or personal token. */
export const AuditActor = Type.Object({
  type: Type.Enum([...auditActors]),
  id: Nullable(Type.Union([Type.Integer(), Type.String()])),
  name: Nullable(Type.String()),
  tokenId: Nullable(Type.Integer()),
})
export type AuditActor = Static<typeof AuditActor>

export const AuditObject = Type.Object({
  type: Type.String(),
  id: Nullable(Type.Union([Type.Integer(), Type.String()])),
  name: Nullable(Type.String()),
})
export type AuditObject = Static<typeof AuditObject>

/** Facts about what was done: never a password, key, secret parameter or script text. */
export const AuditDetail = Type.Record(
  Type.String(),
  Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null(), Type.Array(Type.String())]),
)
export type AuditDetail = Static<typeof AuditDetail>

/** One entry of the audit log (contract §3); `hash` chains it to the one before (core/audit.ts). */
export const AuditEntry = Type.Object(
  {
    id: Type.Integer(),
    at: Time,
    actor: AuditActor,
    ip: Nullable(Type.String()),
    action: Type.String(),
    object: Nullable(AuditObject),
    outcome: AuditOutcome,
    detail: AuditDetail,
    hash: Type.String(),
  },
  { examples: [examples.auditEntry] },
)
export type AuditEntry = Static<typeof AuditEntry>

/** Filters of the log; each takes the exact text, `actor` the actor's name. */
export const AuditQuery = Closed({
  ...paging,
  before: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'Only entries with a smaller id: with the id of the last one of a page the next begins there, whatever was added since. totalElements then counts no further than one past the page',
    }),
  ),
  action: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  actor: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  objectType: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  objectId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  outcome: Type.Optional(AuditOutcome),
  from: Type.Optional(Time),
  to: Type.Optional(Time),
})
export type AuditQuery = Static<typeof AuditQuery>
