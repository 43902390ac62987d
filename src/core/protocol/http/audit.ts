import { auditActors, auditOutcomes } from '../../audit.ts'
import { Closed, Nullable, paging, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

const AuditOutcome = Type.Enum([...auditOutcomes])

export const AuditActor = Type.Object({
  type: Type.Enum([...auditActors]),
  id: Nullable(Type.Union([Type.Integer(), Type.String()])),
  name: Nullable(Type.String()),
  tokenId: Nullable(Type.Integer()),
})

export const AuditObject = Type.Object({
  type: Type.String(),
  id: Nullable(Type.Union([Type.Integer(), Type.String()])),
  name: Nullable(Type.String()),
})

export const AuditDetail = Type.Record(
  Type.String(),
  Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null(), Type.Array(Type.String())]),
)

export const AuditEntry = Type.Object({
  id: Type.Integer(),
  at: Time,
  actor: AuditActor,
  ip: Nullable(Type.String()),
  action: Type.String(),
  object: Nullable(AuditObject),
  outcome: AuditOutcome,
  detail: AuditDetail,
  hash: Type.String(),
})

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
  after: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'With Accept: application/x-ndjson: only entries with a greater id, so that a cut download continues after the last entry received',
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
