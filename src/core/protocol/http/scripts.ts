import { maxScriptBytes, scriptTypes } from '../../scripts/script-form.ts'
import { Closed, Id, Line, Nullable, named, paging, Text, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

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
  /** It has to be given, and not empty. */
  required: Type.Boolean(),
  /** What it is where it is not given; null: then the script does not get it. */
  default: Nullable(Type.String()),
  /** For people; may be empty. */
  description: Type.String(),
  /** Its value is given in `secretParams`. */
  secret: Type.Boolean(),
  /** What a value has to match as a whole, in the syntax of RE2; null: anything will do. */
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
  /** In the order in which the text declares them; empty: it takes any. */
  params: Type.Array(ScriptParam),
  version: Type.Integer(),
  sha256: Type.String(),
  createdBy: Type.String(),
  createdAt: Time,
  updatedAt: Time,
})
export type Script = Static<typeof Script>

/** A script as lists show it: `content` and `params` only where `name` asks for one script. */
export const ScriptSummary = Type.Object({
  ...Script.properties,
  content: Type.Optional(Script.properties.content),
  params: Type.Optional(Script.properties.params),
  /** Of the content, in UTF-8. Older servers don't say it. */
  bytes: Type.Optional(Type.Integer()),
})
export type ScriptSummary = Static<typeof ScriptSummary>

/** A version as lists show it: all but the text. */
export const ScriptVersionSummary = Type.Object({
  version: Type.Integer(),
  name: Type.String(),
  type: ScriptType,
  sha256: Type.String(),
  /** Of the content, in UTF-8. */
  bytes: Type.Integer(),
  changedBy: Type.String(),
  changedAt: Time,
})
export type ScriptVersionSummary = Static<typeof ScriptVersionSummary>

/** The script as it was in one of its versions. */
export const ScriptVersion = Type.Object({ ...Script.properties, changedBy: Type.String() })
export type ScriptVersion = Static<typeof ScriptVersion>
