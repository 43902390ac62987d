import { auditActors, auditOutcomes } from '../../audit.ts'
import { Closed, Nullable, paging, type Static, Time, Type } from './common.ts'

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

/** Filters match the exact text; `actor` is the actor's name. */
export const AuditQuery = Closed({
  ...paging,
  before: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'Only entries with a smaller id. The id of the last entry on a page gets the next page, regardless of new entries. totalElements then counts at most one past the page',
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
