import fc from 'fast-check'

/** Values that people, broken programs and attackers send in place of others (reliability "Bad input"). */
const badValues: unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 53,
  1e308,
  -1e308,
  '',
  ' ',
  '\t\r\n',
  '0',
  '1e3',
  'NaN',
  'null',
  '-1',
  'abc',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  'a\u0000b',
  '\u001b[31mred\u001b[0m',
  '\ud800',
  '\u202egnp.exe',
  'a\u200bb',
  '\ufeffa',
  'a\udc00b',
  '<script>alert(1)</script>',
  "'; DROP TABLE hosts; --",
  '$(reboot)',
  'x'.repeat(300),
  'x'.repeat(70_000),
  [],
  [[]],
  [null],
  [1, 'a', {}],
  Array.from({ length: 2000 }, (_, index) => index - 5),
  {},
  { a: 1 },
  { length: 1 },
  { toString: 'x', valueOf: 1 },
]

type Step = string | number

export function pathsOf(value: unknown, path: Step[] = []): Step[][] {
  if (typeof value !== 'object' || value === null) return [path]
  const inner = Object.entries(value).flatMap(([key, held]) =>
    pathsOf(held, [...path, Array.isArray(value) ? Number(key) : key]),
  )
  return [path, ...inner]
}

export function changedAt(
  value: unknown,
  [step, ...rest]: readonly Step[],
  change: (held: unknown) => unknown,
): unknown {
  if (step === undefined) return change(value)
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<Step, unknown>
  const next = changedAt(copy[step], rest, change)
  if (next === removed) delete copy[step]
  else copy[step] = next
  return copy
}
const removed = Symbol('removed')

/** A good body with one fault: a field that is missing, has another type or shape, or is unknown. */
function oneFault(good: unknown): fc.Arbitrary<string> {
  const places = fc.constantFrom(...pathsOf(good))
  const value = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...badValues) },
    { weight: 1, arbitrary: fc.jsonValue() },
  )
  const replaced = fc.tuple(places, value).map(([path, bad]) => changedAt(good, path, () => bad))
  const gone = places.map((path) => (path.length === 0 ? null : changedAt(good, path, () => removed)))
  const more = fc
    .tuple(fc.constantFrom('batchsize', 'constructor', 'hostID', 'x', ''), value)
    .map(([name, bad]) => ({
      ...(good as object),
      [name]: bad,
    }))
  return fc.oneof({ weight: 6, arbitrary: replaced }, gone, more).map((body) => JSON.stringify(body))
}

/** Text that is not JSON, or JSON with a trick. */
function brokenText(good: unknown): fc.Arbitrary<string> {
  const text = JSON.stringify(good)
  const cut = fc.integer({ min: 0, max: Math.max(0, text.length - 1) }).map((at) => text.slice(0, at))
  const tricks = fc.constantFrom(
    `${text}${text}`,
    text.replace('{', '{"__proto__":{"role":"ADMIN"},'),
    text.replace('{', '{"constructor":{"prototype":{"role":"ADMIN"}},'),
    `${'['.repeat(10_000)}${']'.repeat(10_000)}`,
    `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`,
    '\ufeff{}',
    "{'a': 1}",
    'NaN',
    '[1,]',
    '\u0000',
    '"\\ud800"',
  )
  return fc.oneof(cut, tricks, fc.string({ unit: 'binary', maxLength: 200 }))
}

/** Bodies, as text, that are close to a good one and mostly bad. */
export function badBodies(good: unknown): fc.Arbitrary<string> {
  return fc.oneof({ weight: 8, arbitrary: oneFault(good) }, { weight: 1, arbitrary: brokenText(good) })
}

/** Query strings with the parameters of an operation, and with unknown ones. */
export function badQueries(names: readonly string[]): fc.Arbitrary<string> {
  const name = fc.constantFrom(...names, 'sizes', '__proto__', 'page[]', '')
  const texts = badValues.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
  const value = fc.oneof(fc.constantFrom(...texts), fc.string({ unit: 'grapheme', maxLength: 40 }))
  const pair = fc.tuple(name, value).map(([key, text]) => {
    const short = text.slice(0, 2000)
    return `${encodeURIComponent(key)}=${encodeURIComponent(short.replace(/[\ud800-\udfff]/g, ''))}`
  })
  const raw = fc.constantFrom(
    '%',
    '%zz',
    '%00',
    '%ff%fe',
    '&&&',
    'page',
    'page=1&page=2',
    'size=1&size=',
    '=1',
    '?page=1',
  )
  return fc.oneof(
    fc.array(pair, { minLength: 1, maxLength: 4 }).map((pairs) => pairs.join('&')),
    raw,
  )
}

/** Strings in a path in place of an id. */
export const badIds = [
  '0',
  '-1',
  '1.0',
  '1e3',
  '01',
  '9007199254740992',
  '99999999999999999999',
  'abc',
  '..',
  '..%2f..%2fetc%2fpasswd',
  '%00',
  '%ff',
  '%F0%9F%98%80',
  '__proto__',
  'constructor',
  "1'--",
  '1;2',
  '1%20',
  '%2e%2e',
  'x'.repeat(3000),
]
