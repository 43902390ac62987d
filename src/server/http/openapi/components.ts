import { schemaNames } from './named-schemas.ts'
import type { Schema } from './schema.ts'

/** The schemas of the document that have a name, and how the others refer to them. */
export interface Components {
  /** As the document says it; what has a name becomes a reference and is kept in `schemas`. */
  refer: (schema: Schema) => Schema
  schemas: Record<string, Schema>
}

/** What other tools do not know, in words that they do: formats of ours, and objects whose names follow a pattern. */
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

export function createComponents(): Components {
  const nameOf = schemaNames()
  const schemas: Record<string, Schema> = {}
  const each = (parts: Readonly<Record<string, Schema>>) =>
    Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, refer(part)]))

  function describe(schema: Schema): Schema {
    // An example stands with the body or answer as a whole; said in the schema too, it would double the document.
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
