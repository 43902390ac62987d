import { missedRules, overlaps, skipReasons, slotOutcomes } from '../../schedules/decide.ts'
import { Target } from './clusters.ts'
import {
  Closed,
  Id,
  Line,
  Nullable,
  named,
  OpaqueId,
  paging,
  type Static,
  Time,
  type TSchema,
  Type,
} from './common.ts'
import { Copy } from './files.ts'
import { AdHocScript, Params, runOptions, TaskStatus } from './tasks.ts'

export const Overlap = Type.Enum([...overlaps])
export const Missed = Type.Enum([...missedRules])
export const SlotOutcome = Type.Enum([...slotOutcomes])
export const SkipReason = Type.Enum([...skipReasons])

const yearOfSeconds = 366 * 86_400

/** When it runs (contract §14); the service validates cron expressions and time zones. */
const Cron = Type.String({ minLength: 1, maxLength: 256, format: 'not-blank' })
const Every = Type.Integer({ minimum: 1, maximum: yearOfSeconds })
const Zone = Type.String({ minLength: 1, maxLength: 64, format: 'not-blank' })
const Jitter = Type.Integer({ minimum: 0, maximum: yearOfSeconds })
const Within = Type.Integer({ minimum: 0, maximum: yearOfSeconds })

/** Exactly one of these. */
const action = {
  scriptId: Type.Optional(Id),
  script: Type.Optional(AdHocScript),
  copy: Type.Optional(Copy),
}

export const ScheduleCreate = Closed(
  {
    name: Line(128),
    cron: Type.Optional(Cron),
    everySeconds: Type.Optional(Every),
    at: Type.Optional(Time),
    timezone: Type.Optional(Zone),
    ...action,
    target: Target,
    params: Type.Optional(Params),
    secretParams: Type.Optional(Params),
    ...runOptions,
    enabled: Type.Optional(Type.Boolean()),
    overlap: Type.Optional(Overlap),
    missed: Type.Optional(Missed),
    missedWithinSeconds: Type.Optional(Within),
    jitterSeconds: Type.Optional(Jitter),
    from: Type.Optional(Time),
    until: Type.Optional(Time),
  },
  {
    examples: [
      {
        name: 'nightly',
        cron: '30 3 * * 1-5',
        timezone: 'Europe/Berlin',
        scriptId: 5,
        target: { clusterId: 2 },
      },
    ],
  },
)
export type ScheduleCreate = Static<typeof ScheduleCreate>

type Cleared<P extends Record<string, TSchema>> = {
  [K in keyof P]: ReturnType<typeof cleared<P[K]>>
}
const cleared = <T extends TSchema>(schema: T) => Type.Optional(Nullable(schema))
const allCleared = <P extends Record<string, TSchema>>(properties: P): Cleared<P> =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, cleared(schema)]),
  ) as Cleared<P>

/** RFC 7396: null removes a param's value, and resets any other field. */
const ParamsPatch = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' }),
  Nullable(Type.String({ maxLength: 131_072, pattern: '^[^\\u0000]*$' })),
  { additionalProperties: false, maxProperties: 1000, propertyNames: { format: 'unreserved' } },
)

/** One of cron, everySeconds and at replaces another; likewise scriptId, script and copy. */
export const SchedulePatch = Closed(
  {
    name: Type.Optional(Line(128)),
    cron: Type.Optional(Cron),
    everySeconds: Type.Optional(Every),
    at: Type.Optional(Time),
    timezone: cleared(Zone),
    ...action,
    target: Type.Optional(Target),
    params: cleared(ParamsPatch),
    secretParams: cleared(ParamsPatch),
    ...allCleared(runOptions),
    enabled: Type.Optional(Type.Boolean()),
    overlap: cleared(Overlap),
    missed: cleared(Missed),
    missedWithinSeconds: cleared(Within),
    jitterSeconds: cleared(Jitter),
    from: cleared(Time),
    until: cleared(Time),
    /** Confirms that secrets may go to the stored scripts as they are now. */
    confirmed: Type.Optional(Type.Literal(true)),
  },
  { examples: [{ cron: '0 4 * * *', jitterSeconds: 300, until: null }] },
)
export type SchedulePatch = Static<typeof SchedulePatch>

/** Task of the last run; `taskId` is null if none could be created: the history has the reason. */
const LastTask = Type.Object({
  taskId: Nullable(OpaqueId),
  status: TaskStatus,
  at: Time,
})

/** Options of execute calls are present if they were given. */
export const Schedule = Type.Object({
  id: Id,
  name: Type.String(),
  cron: Nullable(Type.String()),
  everySeconds: Nullable(Type.Integer()),
  at: Nullable(Time),
  timezone: Type.String(),
  scriptId: Nullable(Id),
  script: Nullable(AdHocScript),
  copy: Nullable(Copy),
  target: Target,
  params: Type.Record(Type.String(), Type.String()),
  /** Names only. */
  secretParams: Type.Array(Type.String()),
  ...runOptions,
  enabled: Type.Boolean(),
  overlap: Overlap,
  missed: Missed,
  missedWithinSeconds: Type.Integer(),
  jitterSeconds: Type.Integer(),
  from: Nullable(Time),
  until: Nullable(Time),
  /** The next slot, before jitter; null while paused or suspended, and after the last one. */
  nextAt: Nullable(Time),
  /** Null before the first run, and once that task is deleted. */
  lastTask: Nullable(LastTask),
  /** Why it no longer runs. */
  suspended: Nullable(Type.String()),
  owner: Type.String(),
  createdAt: Time,
  updatedAt: Time,
})
export type Schedule = Static<typeof Schedule>

/** A schedule's script in lists: `content` only if `name` asks for one schedule. */
const ListedText = Type.Object({
  ...AdHocScript.properties,
  content: Type.Optional(Type.String()),
  /** First line that is not a comment, truncated. */
  firstLine: Type.Optional(Nullable(Type.String())),
  /** Size of the content in UTF-8. */
  bytes: Type.Optional(Type.Integer()),
})
const listedGate = { scriptId: Type.Optional(Id), script: Type.Optional(ListedText) }

/** A schedule in lists: script texts and `params` only if `name` asks for one schedule. */
export const ScheduleSummary = Type.Object({
  ...Schedule.properties,
  script: Nullable(ListedText),
  params: Type.Optional(Schedule.properties.params),
  verify: Type.Optional(Type.Object({ ...runOptions.verify.properties, ...listedGate })),
  rollback: Type.Optional(Type.Object(listedGate)),
})
export type ScheduleSummary = Static<typeof ScheduleSummary>

/** Outcome of a slot, or of several that were skipped together. */
export const ScheduleSlot = Type.Object({
  /** The last of these slots, before jitter. */
  plannedAt: Time,
  firstAt: Time,
  /** Number of slots; null: too many to count. */
  count: Nullable(Type.Integer()),
  /** When it was decided. */
  at: Time,
  outcome: SlotOutcome,
  /** For SKIPPED. */
  why: Nullable(SkipReason),
  /** For FAILED: why no task could be created. */
  error: Nullable(Type.String()),
  taskId: Nullable(OpaqueId),
  /** User who ran it manually, outside its slots. */
  by: Nullable(Type.String()),
})
export type ScheduleSlot = Static<typeof ScheduleSlot>

export const ScheduleTimes = Type.Object({ next: Type.Array(Time) })
export type ScheduleTimes = Static<typeof ScheduleTimes>

export const ScheduleQuery = Closed({
  ...paging,
  ...named,
  search: Type.Optional(Type.String({ maxLength: 253 })),
})
export type ScheduleQuery = Static<typeof ScheduleQuery>

export const NextQuery = Closed({
  count: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 5, description: 'Number of times' }),
  ),
})
export type NextQuery = Static<typeof NextQuery>
