import fc from 'fast-check'

export const index = fc.oneof(
  fc.integer({ min: 0, max: 30 }).map(String),
  fc.integer({ min: 0, max: 120 }).map((n) => String(n).padStart(3, '0')),
)
export const part = fc.constantFrom('a', 'b', 'web', 'n-', 'x.y')
export const name = fc.oneof(
  fc.tuple(part, index).map(([prefix, n]) => prefix + n),
  fc.tuple(part, index, part, index).map(([a, m, b, n]) => a + m + b + n),
  part,
)
const range = fc
  .record({
    first: fc.integer({ min: 0, max: 40 }),
    length: fc.integer({ min: 0, max: 12 }),
    step: fc.integer({ min: 1, max: 4 }),
    width: fc.constantFrom(1, 1, 3),
  })
  .map(({ first, length, step, width }) => {
    const from = String(first).padStart(width, '0')
    if (length === 0) return from
    return `${from}-${String(first + length).padStart(width, '0')}${step === 1 ? '' : `/${step}`}`
  })
const bracket = fc.array(range, { minLength: 1, maxLength: 3 }).map((ranges) => `[${ranges.join(',')}]`)
const operand = fc.oneof(
  name,
  fc.tuple(part, bracket).map(([a, x]) => a + x),
  fc.tuple(part, bracket, part).map(([a, x, b]) => a + x + b),
  fc.tuple(part, bracket, part, bracket).map(([a, x, b, y]) => a + x + b + y),
)
/** Node sets with every operator. */
export const nodeset = fc
  .tuple(
    operand,
    fc.array(fc.tuple(fc.constantFrom(',', '!', '&', '^', ' , ', ' ! '), operand), { maxLength: 4 }),
  )
  .map(([first, rest]) => first + rest.map(([operator, text]) => operator + text).join(''))
