import type { Static, TObjectOptions, TProperties, TSchema, Type as TypeBox } from 'typebox'
import { largestPage } from '../bounds.ts'

export type { Static, TObject, TObjectOptions, TProperties, TSchema } from 'typebox'

type Builders = Pick<
  typeof TypeBox,
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
>
type Schema = object
type Options = object

/** Marks optional properties, as TypeBox does; not enumerable, because it is not part of the schema. */
const optional = '~optional'

const required = (properties: Record<string, Schema>) => {
  const names = Object.keys(properties).filter((name) => !Object.hasOwn(properties[name] ?? {}, optional))
  return names.length > 0 ? { required: names } : {}
}

const builders = {
  Array: (items: Schema, options?: Options) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Options) => ({ type: 'boolean', ...options }),
  Enum: (values: readonly string[], options?: Options) => ({ enum: values, ...options }),
  Integer: (options?: Options) => ({ type: 'integer', ...options }),
  Literal: (value: string | number | boolean, options?: Options) => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: (options?: Options) => ({ type: 'null', ...options }),
  Number: (options?: Options) => ({ type: 'number', ...options }),
  Object: (properties: Record<string, Schema>, options?: Options) => ({
    type: 'object',
    ...required(properties),
    properties,
    ...options,
  }),
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, optional, { value: true }),
  Record: (key: { pattern?: string }, value: Schema, options?: Options) => ({
    type: 'object',
    patternProperties: { [key.pattern ?? '^.*$']: value },
    ...options,
  }),
  String: (options?: Options) => ({ type: 'string', ...options }),
  Union: (anyOf: readonly Schema[], options?: Options) => ({ anyOf, ...options }),
}

/**
 * The builders of TypeBox used here, under its types and with the same results. TypeBox itself loads 370 modules: a
 * quarter of a second and 20 MB at each start of a server.
 */
export const Type = builders as unknown as Builders

/** An object that refuses unknown fields: a mistyped `batchsize` must never run a fleet (contract §1). */
export const Closed = <P extends TProperties>(properties: P, options: TObjectOptions = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false })

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])

const mapped = (properties: TProperties, change: (schema: TSchema) => TSchema) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, change(schema)]))

export const allNullable = <P extends TProperties>(properties: P) =>
  mapped(properties, Nullable) as { [K in keyof P]: ReturnType<typeof Nullable<P[K]>> }

export const allOptional = <P extends TProperties>(properties: P) =>
  mapped(properties, Type.Optional) as { [K in keyof P]: ReturnType<typeof Type.Optional<P[K]>> }

/** Ids of hosts, scripts, clusters and users: positive integers below 2^53 (contract §1). */
export const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

/** `taskId` and `sessionId`: time-sortable, URL- and file-safe (contract §1). */
export const OpaqueId = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'an id assigned by the server',
  examples: ['01JNZ8Q3V5K7M9P2R4T6W8Y0AB'],
})

/** ISO 8601 UTC with milliseconds. */
export const Time = Type.String({ format: 'date-time', examples: ['2026-03-02T09:30:00.000Z'] })

/** Control characters except tabs and line ends, bidi and zero-width ones, unpaired surrogates (contract §1). */
const invisible =
  '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff\\ud800-\\udfff'

/** A single line of visible characters. */
const onOneLine = `^[^${invisible}\\u0009\\u000a\\u000d\\u2028\\u2029]*$`

/** Single-line text: not blank, no invisible characters. */
export const Line = (maxLength: number) =>
  Type.String({ minLength: 1, maxLength, pattern: onOneLine, format: 'not-blank' })

/** Text that may be empty, and may have several lines and tabs. */
export const Text = (maxLength: number) => Type.String({ maxLength, pattern: `^[^${invisible}]*$` })

export const Hostname = Type.String({
  minLength: 1,
  maxLength: 253,
  // A leading dash makes an option of it in any command; `.` and `..` are directories.
  pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]*$',
  description: 'made of letters, digits, dots, dashes and underscores, not starting with a dot or dash',
  format: 'not-blank',
})

export const TagKey = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$',
  description: 'made of up to 63 letters, digits and _ . / -, starting with a letter or digit',
})
export const TagValue = Type.String({ maxLength: 256, pattern: onOneLine })
export const Tags = Type.Record(TagKey, TagValue, { additionalProperties: false })

/** Query of every list: `page` from 0, or `offset`, and `size` 1 to 500 (contract §1). */
export const paging = {
  page: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0, description: 'Page number, from 0' }),
  ),
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Instead of page: records to skip, such as `next` of the previous page',
    }),
  ),
  size: Type.Optional(
    Type.Integer({ minimum: 1, maximum: largestPage, default: 20, description: 'Records per page' }),
  ),
}
export const PageQuery = Closed(paging)
export type PageQuery = Static<typeof PageQuery>

/** Query of every list whose records have names (contract §1). */
export const named = {
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 253,
      description: 'Only the record with this exact name, case-insensitive',
    }),
  ),
}
export const NamedQuery = Closed({ ...paging, ...named })
export type NamedQuery = Static<typeof NamedQuery>

/** `data` of a deletion, and of changes that do not return the record. */
export const IdOnly = Type.Object({ id: Id })
/** `data` of operations without a result. */
export const Nothing = Type.Object({})

export const Up = Type.Object({ status: Type.Literal('UP') })

export const PageOf = <T extends TSchema>(item: T) =>
  Type.Object({
    content: Type.Array(item),
    page: Type.Integer(),
    size: Type.Integer(),
    totalElements: Type.Integer(),
    totalPages: Type.Integer(),
    /** `offset` of the record after this page; null at the end of the list. Absent from older servers. */
    next: Type.Optional(Nullable(Type.Integer())),
  })

export interface Page<T> {
  content: T[]
  page: number
  size: number
  totalElements: number
  totalPages: number
  next?: number | null
}
