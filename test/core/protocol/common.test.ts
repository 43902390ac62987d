import test from 'ava'
import { Type as TypeBox } from 'typebox'
import { Type } from '../../../src/core/protocol/http/common.ts'

/** A schema with every builder, made by TypeBox or by our own `Type`. */
const written = (T: typeof Type) => {
  const line = T.String({ minLength: 1, examples: ['a line'] })
  return T.Object(
    {
      names: T.Array(line, { maxItems: 3 }),
      also: T.Optional(T.Array(T.Boolean({ default: true }))),
      size: T.Optional(T.Integer({ minimum: 1 })),
      share: T.Number({ maximum: 1 }),
      kind: T.Enum(['a', 'b'], { description: 'which' }),
      type: T.Literal('FIXED', { examples: ['FIXED'] }),
      none: T.Union([T.Null(), T.Literal(7), T.Literal(true)], { default: null }),
      tags: T.Record(T.String({ pattern: '^[a-z]$' }), T.Optional(line), { additionalProperties: false }),
      notes: T.Record(T.String(), T.String()),
      inner: T.Object({ line: T.Optional(line) }),
      empty: T.Object({}, { examples: [{}] }),
      line,
    },
    { additionalProperties: false },
  )
}

test('schemas are equal to those of TypeBox', (t) => {
  t.is(JSON.stringify(written(Type)), JSON.stringify(written(TypeBox)))
})

test('optional properties of TypeBox are optional in our objects, and vice versa', (t) => {
  const mixed = (T: typeof Type, other: typeof Type) =>
    JSON.stringify(T.Object({ a: other.Optional(other.Null()), b: other.Null() }))
  t.is(mixed(Type, TypeBox), mixed(TypeBox, TypeBox))
  t.is(mixed(TypeBox, Type), mixed(TypeBox, TypeBox))
})

test('a schema stays required in one object after it was made optional elsewhere', (t) => {
  const line = Type.String()
  Type.Optional(line)
  t.is(
    JSON.stringify(Type.Object({ line })),
    '{"type":"object","required":["line"],"properties":{"line":{"type":"string"}}}',
  )
})
