import * as agent from '../../../core/protocol/http/agent.ts'
import * as audit from '../../../core/protocol/http/audit.ts'
import * as clusters from '../../../core/protocol/http/clusters.ts'
import * as common from '../../../core/protocol/http/common.ts'
import * as events from '../../../core/protocol/http/events.ts'
import * as files from '../../../core/protocol/http/files.ts'
import * as hosts from '../../../core/protocol/http/hosts.ts'
import * as logs from '../../../core/protocol/http/logs.ts'
import * as schedules from '../../../core/protocol/http/schedules.ts'
import * as scripts from '../../../core/protocol/http/scripts.ts'
import * as server from '../../../core/protocol/http/server.ts'
import * as tasks from '../../../core/protocol/http/tasks.ts'
import * as terminals from '../../../core/protocol/http/terminals.ts'
import * as users from '../../../core/protocol/http/users.ts'
import * as webhooks from '../../../core/protocol/http/webhooks.ts'

/** Modules whose exported schemas become named components; add new schema files here. */
const modules: readonly object[] = [
  agent,
  audit,
  clusters,
  common,
  events,
  files,
  hosts,
  logs,
  schedules,
  scripts,
  server,
  tasks,
  terminals,
  users,
  webhooks,
]

export interface Components {
  /** Converts a schema for the document; a named one becomes a reference and is added to `schemas`. */
  refer: (schema: Schema) => Schema
  schemas: Record<string, Schema>
}

/** JSON Schema draft 2020-12, as far as our schemas use it. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly pattern?: string
  readonly description?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly propertyNames?: Schema
}

export function createComponents(): Components {
  const nameOf = schemaNames()
  const schemas: Record<string, Schema> = {}
  const each = (parts: Readonly<Record<string, Schema>>) =>
    Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, refer(part)]))

  function describe(schema: Schema): Schema {
    // Bodies and answers have an example as a whole; repeating it in schemas would double the document.
    const { examples: _examples, ...said } = inStandardWords(schema)
    const { properties, items, anyOf, additionalProperties } = said as Schema
    return {
      ...said,
      ...(properties && { properties: each(properties) }),
      ...(items && { items: refer(items) }),
      ...(anyOf && { anyOf: anyOf.map(refer) }),
      ...(typeof additionalProperties === 'object' && { additionalProperties: refer(additionalProperties) }),
    }
  }

  function refer(schema: Schema): Schema {
    const name = nameOf(schema)
    if (name === undefined) return describe(schema)
    schemas[name] ??= describe(schema)
    return { $ref: `#/components/schemas/${name}` }
  }

  return { refer, schemas }
}

/** Replaces constructs that other tools do not know: our own formats, and objects with name patterns. */
function inStandardWords(schema: Schema): Schema {
  const { format, pattern, patternProperties, additionalProperties, ...rest } = schema
  const words: Record<string, unknown> = { ...rest }
  if (schema.enum?.every((value) => typeof value === 'string')) words['type'] = 'string'
  if (format === 'ip') words['description'] = schema.description ?? 'An IPv4 or IPv6 address.'
  else if (format !== undefined && format !== 'not-blank') words['format'] = format
  if (format === 'not-blank') words['pattern'] = pattern?.replace(/^\^/, '^(?=[\\s\\S]*\\S)') ?? '\\S'
  else if (pattern !== undefined) words['pattern'] = pattern
  const [names, values] = Object.entries(patternProperties ?? {})[0] ?? []
  if (names === undefined || values === undefined) {
    if (additionalProperties !== undefined) words['additionalProperties'] = additionalProperties
    return words
  }
  words['additionalProperties'] = values
  if (names !== '^.*$') words['propertyNames'] = { pattern: names }
  return words
}

/** Objects, enums and unions are useful as named types; a limited text or null is not. */
const worthNaming = ({ type, anyOf = [] }: Schema): boolean =>
  type === 'object' || (type === undefined && anyOf.every((one) => one.type !== 'null'))

/** Finds the export name of a schema, by identity or by content, because typebox copies some (`Type.Optional`). */
function schemaNames(): (schema: Schema) => string | undefined {
  const byIdentity = new Map<Schema, string>()
  const byText = new Map<string, string>()
  for (const [name, value] of modules.flatMap((module) => Object.entries(module))) {
    if (!isSchema(value) || !worthNaming(value)) continue
    byIdentity.set(value, name)
    const text = JSON.stringify(value)
    if (!byText.has(text)) byText.set(text, name)
  }
  return (schema) => {
    if (!worthNaming(schema)) return undefined
    return byIdentity.get(schema) ?? byText.get(JSON.stringify(schema)) ?? pageName(schema, byIdentity)
  }
}

/** `PageOf(Host)` is not exported, so it is named after its items. */
function pageName({ properties }: Schema, names: ReadonlyMap<Schema, string>): string | undefined {
  const item = properties?.['totalElements'] === undefined ? undefined : properties['content']?.items
  const name = item === undefined ? undefined : names.get(item)
  return name === undefined ? undefined : `${name}Page`
}

function isSchema(value: unknown): value is Schema {
  if (typeof value !== 'object' || value === null) return false
  return 'type' in value || 'enum' in value || 'anyOf' in value
}

const samples: Record<string, unknown> = { boolean: true, integer: 1, number: 1, object: {}, string: 'text' }

/** Example of a schema: its own, or one built from its required properties. */
export function exampleOf(schema: Schema): unknown {
  const { type = '', examples, properties, required = [], items, anyOf } = schema
  if (examples) return examples[0]
  if ('const' in schema) return schema.const
  if (schema.enum) return schema.enum[0]
  if (anyOf?.[0]) return exampleOf(anyOf[0])
  if (items) return [exampleOf(items)]
  if (!properties) return samples[type]
  return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {})]))
}
