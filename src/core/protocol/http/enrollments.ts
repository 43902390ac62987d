import { Closed, Id, Line, Nullable, type Static, Tags, Time, Type } from './common.ts'

export const EnrollmentCreate = Closed(
  {
    name: Type.Optional(Line(128)),
    maxUses: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000 })),
    expiresInHours: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 8784 })),
    tags: Type.Optional(Tags),
    clusterId: Type.Optional(Id),
    hostId: Type.Optional(Id),
    url: Type.Optional(Line(2048)),
    fingerprint: Type.Optional(Line(128)),
  },
  { examples: [{ name: 'web servers', maxUses: 20, expiresInHours: 24, tags: { role: 'web' } }] },
)
export type EnrollmentCreate = Static<typeof EnrollmentCreate>

export const Enrollment = Type.Object({
  id: Id,
  name: Nullable(Type.String()),
  maxUses: Type.Integer(),
  uses: Type.Integer(),
  tags: Type.Record(Type.String(), Type.String()),
  clusterId: Nullable(Id),
  hostId: Nullable(Id),
  createdBy: Type.String(),
  createdAt: Time,
  expiresAt: Time,
})
export type Enrollment = Static<typeof Enrollment>

const OpenEnrollment = Type.Object({
  id: Id,
  name: Nullable(Type.String()),
  maxUses: Type.Integer(),
  uses: Type.Integer(),
  expiresAt: Time,
})
export type OpenEnrollment = Static<typeof OpenEnrollment>

/**
 * `data` of operations that revoke a host's agent. Only a newer enrollment token admits the agent again. A holder of
 * one of `openEnrollments` can still enroll a machine as a new host.
 */
export const Parted = Type.Object({ id: Id, openEnrollments: Type.Array(OpenEnrollment) })
export type Parted = Static<typeof Parted>

/**
 * `token` is shown only once: here, in `join` (everything that a host needs), and in `line`, to paste on the host
 * (contract §10). Both are null while no URL is known.
 */
export const EnrollmentCreated = Type.Object({
  ...Enrollment.properties,
  token: Type.String(),
  join: Nullable(Type.String()),
  line: Nullable(Type.String()),
})
export type EnrollmentCreated = Static<typeof EnrollmentCreated>
