/** A JSON Schema of draft 2020-12, as far as the schemas of ours use it. */
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

export function isSchema(value: unknown): value is Schema {
  if (typeof value !== 'object' || value === null) return false
  return 'type' in value || 'enum' in value || 'anyOf' in value
}

const samples: Record<string, unknown> = { boolean: true, integer: 1, number: 1, object: {}, string: 'text' }

/** An example of a schema: its own, or one made of its required properties. */
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
