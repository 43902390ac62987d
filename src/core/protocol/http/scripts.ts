import { maxScriptBytes, scriptTypes } from '../../scripts/script-form.ts'
import { Closed, Id, Line, Nullable, named, paging, type Static, Text, Time, Type } from './common.ts'

export const ScriptType = Type.Enum([...scriptTypes])

export const Content = Type.String({ minLength: 1, maxLength: maxScriptBytes, format: 'not-blank' })
/** Seconds on the host, 0 = no limit (contract §4). */
export const Timeout = Type.Integer({ minimum: 0, maximum: 31_536_000 })
const TagList = Type.Array(Line(64), { maxItems: 64 })

export const ScriptCreate = Closed(
  {
    name: Line(128),
    description: Type.Optional(Text(4096)),
    type: ScriptType,
    content: Content,
    timeout: Type.Optional(Timeout),
    tags: Type.Optional(TagList),
    category: Type.Optional(Line(64)),
  },
  {
    examples: [
      { name: 'restart', type: 'BASH', content: 'systemctl restart "$UNIT"', timeout: 120, tags: ['web'] },
    ],
  },
)
export type ScriptCreate = Static<typeof ScriptCreate>

export const ScriptPatch = Closed(
  {
    name: Type.Optional(Line(128)),
    description: Type.Optional(Nullable(Text(4096))),
    type: Type.Optional(ScriptType),
    content: Type.Optional(Content),
    timeout: Type.Optional(Nullable(Timeout)),
    tags: Type.Optional(Nullable(TagList)),
    category: Type.Optional(Nullable(Line(64))),
  },
  { examples: [{ timeout: 300, category: null }] },
)
export type ScriptPatch = Static<typeof ScriptPatch>

export const ScriptQuery = Closed({
  ...paging,
  ...named,
  type: Type.Optional(ScriptType),
  category: Type.Optional(Type.String({ maxLength: 64 })),
  tag: Type.Optional(Type.String({ maxLength: 64 })),
  search: Type.Optional(Type.String({ maxLength: 253 })),
})
export type ScriptQuery = Static<typeof ScriptQuery>

/** A param that a script declares in its comments (docs/use/scripts.md). */
const ScriptParam = Type.Object({
  name: Type.String(),
  /** Must be given and not empty. */
  required: Type.Boolean(),
  /** Value if none is given; null: the script does not get the param. */
  default: Nullable(Type.String()),
  /** For people; may be empty. */
  description: Type.String(),
  /** Must be given in `secretParams`. */
  secret: Type.Boolean(),
  /** RE2 pattern that the whole value must match; null: any value. */
  pattern: Nullable(Type.String()),
})

export const Script = Type.Object({
  id: Id,
  name: Type.String(),
  description: Type.String(),
  type: ScriptType,
  content: Type.String(),
  timeout: Nullable(Type.Integer()),
  tags: Type.Array(Type.String()),
  category: Nullable(Type.String()),
  /** In order of declaration; empty: accepts any. */
  params: Type.Array(ScriptParam),
  version: Type.Integer(),
  sha256: Type.String(),
  createdBy: Type.String(),
  createdAt: Time,
  updatedAt: Time,
})
export type Script = Static<typeof Script>

/** A script in lists: `content` and `params` only if `name` asks for one script. */
export const ScriptSummary = Type.Object({
  ...Script.properties,
  content: Type.Optional(Script.properties.content),
  params: Type.Optional(Script.properties.params),
  /** Size of the content in UTF-8. Absent from older servers. */
  bytes: Type.Optional(Type.Integer()),
})
export type ScriptSummary = Static<typeof ScriptSummary>

/** A version in lists, without the text. */
export const ScriptVersionSummary = Type.Object({
  version: Type.Integer(),
  name: Type.String(),
  type: ScriptType,
  sha256: Type.String(),
  /** Size of the content in UTF-8. */
  bytes: Type.Integer(),
  changedBy: Type.String(),
  changedAt: Time,
})
export type ScriptVersionSummary = Static<typeof ScriptVersionSummary>

export const ScriptVersion = Type.Object({ ...Script.properties, changedBy: Type.String() })
export type ScriptVersion = Static<typeof ScriptVersion>
