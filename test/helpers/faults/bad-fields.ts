/** Bad values of fields, by the kind of the field (reliability "Bad input"); `absent` omits the field. */
export const absent = Symbol('absent')

const never: unknown[] = [null, true, [], {}, [null], { toString: 'x' }]
const noText = [absent, ...never, 0, -1, 1e308]
const noNumber = [absent, ...never, '', '0', 'NaN', '1e3', '\u0000']
const noCount = [...noNumber, -1, 1.5, 2 ** 53, 1e308]
/** Stands for a value nested too deep for `JSON.stringify`; see `textOf`. */
const deep = 'nested 10,000 deep'
const deepText = '['.repeat(10_000) + ']'.repeat(10_000)

const noId = [
  ...noText,
  '',
  ' ',
  'a b',
  'x'.repeat(65),
  'a\u0000b',
  '\ud800',
  '../x',
  'é',
  '\u001b[31m',
  deep,
]

/** Bad values of each kind of field. */
export const badValues = {
  id: noId,
  optionalId: noId.filter((value) => value !== absent),
  text: [...noText, deep],
  count: noCount,
  /** A count that may be -1. */
  last: noCount.filter((value) => value !== -1).concat(-2),
  optionalLast: noCount.filter((value) => value !== -1 && value !== absent).concat(-2),
  number: [...noNumber, deep],
  exitCode: [...noNumber, -2, 256, 1.5, 2 ** 53, 1e308],
  /** A name from a set that later versions extend. */
  name: [...noText, '', ' ', 'a b', 'x'.repeat(65), '\u0000', 'é', deep],
  stream: [...noText, '', 'stdin', 'STDOUT', '__proto__', 'constructor'],
  type: [...noText, '', 'RUBY', 'bash', '__proto__'],
  limits: [null, true, [], 'x', 1, { memoryMB: 0 }, { processes: '1' }, { cpuPercent: 1.5 }],
  truth: [absent, null, 0, 1, '', 'true', [], {}],
  optionalText: [...never, 0, -1],
  signal: [true, [], {}, 9, 'x'.repeat(33)],
  error: [true, [], {}, 1, 'x'.repeat(4097)],
  size: [...noCount, 0, 10_001],
  object: [absent, null, true, [], 'x', 1],
  list: [absent, null, true, {}, 'x', 1, [null], [[]], [{}], ['x']],
  names: [absent, null, true, {}, 'x', 1, [null], [[]], [{}], [''], Array(65).fill('x')],
  map: [absent, null, true, [], 'x', 1, { A: 1 }, { A: null }, { ['A'.repeat(5000)]: {} }],
} as const

export type Kind = keyof typeof badValues

/** The frame as text, as it is sent. */
export const textOf = (frame: object) => JSON.stringify(frame).replaceAll(JSON.stringify(deep), deepText)

/** A copy of `good` with `value` at the dotted `path`. */
export function withField(good: object, path: string, value: unknown): object {
  const copy = structuredClone(good) as Record<string, unknown>
  const steps = path.split('.')
  const last = steps.pop() ?? ''
  let held = copy
  for (const step of steps) held = held[step] as Record<string, unknown>
  if (value === absent) delete held[last]
  else held[last] = value
  return copy
}
