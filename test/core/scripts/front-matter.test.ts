import test from 'ava'
import fc from 'fast-check'
import { compareParams } from '../../../src/core/scripts/declared-params.ts'
import {
  type DeclaredParam,
  type FrontMatter,
  parseFrontMatter,
} from '../../../src/core/scripts/front-matter.ts'

const param = (name: string, more: Partial<DeclaredParam> = {}): DeclaredParam => ({
  name,
  required: false,
  secret: false,
  default: null,
  pattern: null,
  description: '',
  ...more,
})

test('front matter is read from the comments above the first command, in one line or several', (t) => {
  const several = `#!/bin/bash -e

# Puts a version in place.
# rsm: name=deploy, type=bash, timeout=1h30m, tags=web release,
#rsm:description="Puts a version, safely, \\"in place\\"", category=roll out
# rsm: param VERSION required "version, like 1.2.3"
  # rsm: param KEEP default=3, param NOTE "what for" default="a, \\\\b", param DEBUG
# rsm: param DB_PASSWORD secret required

set -u
# rsm: name=too late
`
  const { matter, faults, late } = parseFrontMatter(several)
  t.deepEqual(faults, [])
  t.is(late, 11)
  t.deepEqual(matter, {
    name: 'deploy',
    type: 'BASH',
    timeout: 5400,
    tags: ['web', 'release'],
    description: 'Puts a version, safely, "in place"',
    category: 'roll out',
    params: [
      param('VERSION', { required: true, description: 'version, like 1.2.3' }),
      param('KEEP', { default: '3' }),
      param('NOTE', { default: 'a, \\b', description: 'what for' }),
      param('DEBUG'),
      param('DB_PASSWORD', { required: true, secret: true }),
    ],
  })
  const windows = parseFrontMatter('\ufeff# rsm: type=powershell, timeout=90\r\nGet-Date\r\n')
  t.deepEqual(windows, { matter: { type: 'POWERSHELL', timeout: 90, params: [] }, faults: [], late: null })
  t.deepEqual(parseFrontMatter('echo "# rsm: name=x"').matter, { params: [] })
})

const wrong: readonly (readonly [line: string, column: number, message: RegExp])[] = [
  ['# rsm:', 7, /^nothing follows/],
  ['# rsm: timeuot=5m', 8, /^no such setting: timeuot \(did you mean timeout\?\)$/],
  ['# rsm: colour=red', 8, /^no such setting: colour \(one of name, type, /],
  ['# rsm: name=a, name=b', 16, /^name is set twice/],
  ['# rsm: name=, type=bash', 13, /^name= has no value/],
  ['# rsm: type=perl', 13, /^no such type: perl \(one of bash, python, powershell\)$/],
  ['# rsm: timeout=soon', 16, /^timeout takes whole seconds like .*, not soon$/],
  ['# rsm: timeout=1.5', 16, /whole seconds/],
  ['# rsm: description=one, two', 25, /^expected KEY=VALUE or param NAME, not two; .* double quotes$/],
  ['# rsm: description="grüße 🚀, type=bash', 20, /^this text is not closed/],
  ['# rsm: description="🚀" type=bash', 24, /^expected a comma/],
  ["# rsm: description='text'", 20, /double quotes/],
  ['# rsm: this runs on rsm', 8, /^expected KEY=VALUE or param NAME, not this/],
  ['# rsm: param required "text"', 14, /^param has no name/],
  ['# rsm: param 9LIVES', 14, /^9LIVES is not a valid variable name/],
  ['# rsm: param DB-PASS', 14, /^DB-PASS is not a valid variable name/],
  ['# rsm: param LD_PRELOAD', 14, /^LD_PRELOAD makes the dynamic linker .* another name$/],
  ['# rsm: param A required "x" required', 29, /^required is given twice for param A$/],
  ['# rsm: param A "x" "y"', 20, /^text is given twice/],
  ['# rsm: param LEVEL=info', 14, /^write the default of a param as default=: param LEVEL default=info$/],
  ['# rsm: param A mandatory', 16, /^unknown attribute mandatory: use required, secret, /],
  ['# rsm: param A, param A', 23, /^param A is declared twice$/],
  ['# rsm: param A required default=1', 14, /^param A is required, so its default is never used$/],
  ['# rsm: param A secret default=1', 14, /^param A is secret: anyone could read a default in the script$/],
]
for (const [line, column, message] of wrong)
  test(`an invalid line is reported with line, column and advice: ${line}`, (t) => {
    const { faults } = parseFrontMatter(`#!/bin/sh\n${line}\n`)
    t.is(faults.length, 1)
    t.like(faults[0], { line: 2, column })
    t.regex(faults[0]?.message ?? '', message)
  })

test('every invalid line is reported, and malicious texts are parsed quickly', (t) => {
  const { faults } = parseFrontMatter('# rsm: a=b\n# rsm: name=x\n# rsm: param\n# rsm: name=y\n')
  t.deepEqual(
    faults.map(({ line }) => line),
    [1, 3, 4],
  )
  const many = Array.from({ length: 100_000 }, (_, at) => `param A${at}`).join(',')
  t.regex(parseFrontMatter(`# rsm: ${many}`).faults[0]?.message ?? '', /at most 200 params/)
  t.is(parseFrontMatter(`# rsm: name="${'\\'.repeat(1_000_000)}`).faults.length, 1)
})

test('A08 parsing stops after the first hundred faults', (t) => {
  const { matter, faults } = parseFrontMatter(`${'#rsm:x\n'.repeat(150_000)}# rsm: param LATE\n`)
  t.is(faults.length, 100)
  t.is(faults.at(-1)?.line, 100)
  t.deepEqual(matter.params, [])
  t.is(parseFrontMatter(`${'#rsm:x\n'.repeat(99)}# rsm: param LAST\n`).matter.params.length, 1)
})

const text = fc
  .string({ unit: 'grapheme', maxLength: 20 })
  .filter((each) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(each))
const filled = text.filter((each) => each.trim() !== '')
const quote = (value: string) => `"${value.replace(/["\\]/g, '\\$&')}"`
const declared = fc
  .record({
    name: fc.stringMatching(/^P[A-Za-z0-9]{0,6}X$/),
    kind: fc.constantFrom('plain', 'required', 'secret', 'both', 'default'),
    value: text,
    description: text,
  })
  .map(({ name, kind, value, description }) =>
    param(name, {
      description,
      required: kind === 'required' || kind === 'both',
      secret: kind === 'secret' || kind === 'both',
      default: kind === 'default' ? value : null,
    }),
  )
const written = (each: DeclaredParam) =>
  [
    `param ${each.name}`,
    quote(each.description),
    ...(each.required ? ['required'] : []),
    ...(each.secret ? ['secret'] : []),
    ...(each.default === null ? [] : [`default=${quote(each.default)}`]),
  ].join(' ')

test('any quoted text is parsed back unchanged', (t) => {
  fc.assert(
    fc.property(
      filled,
      filled,
      fc.uniqueArray(declared, { selector: ({ name }) => name, maxLength: 5 }),
      fc.boolean(),
      (name, category, params, oneLine) => {
        const items = [`name=${quote(name)}`, `category=${quote(category)}`, ...params.map(written)]
        const content = oneLine
          ? `# rsm: ${items.join(', ')}`
          : items.map((item) => `#rsm: ${item}\n`).join('')
        const expected: FrontMatter = { name, category, params }
        const { matter, faults } = parseFrontMatter(content)
        t.deepEqual(faults, [])
        t.deepEqual(matter, expected)
      },
    ),
    { numRuns: 300 },
  )
})

test('any text is parsed without an exception, and its faults have positions within it', (t) => {
  const piece = fc.constantFrom(
    '# rsm: ',
    'param ',
    'A',
    '=',
    '"',
    '\\',
    ',',
    ' ',
    '\n',
    'name',
    'secret',
    "'",
    '🚀',
    '\r',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const content = `# rsm: ${pieces.join('')}`
      const lines = content.split('\n')
      for (const { line, column } of parseFrontMatter(content).faults)
        t.true(column >= 1 && column <= Array.from(lines[line - 1] ?? '').length + 1, content)
    }),
    { numRuns: 500 },
  )
})

test('params are compared with the declared ones: missing or empty, unknown, exposed, defaulted', (t) => {
  const all = [
    param('VERSION', { required: true }),
    param('KEY', { required: true, secret: true }),
    param('KEEP', { default: '3' }),
    param('NOTE'),
  ]
  const names = (found: readonly DeclaredParam[]) => found.map(({ name }) => name)
  const compare = (params: Record<string, string>, secretParams: Record<string, string> = {}) => {
    const { missing, defaulted, ...rest } = compareParams(
      all,
      new Map(Object.entries(params)),
      new Map(Object.entries(secretParams)),
      () => true,
    )
    return { ...rest, missing: names(missing), defaulted: names(defaulted) }
  }
  t.deepEqual(compare({}), {
    missing: ['VERSION', 'KEY'],
    unknown: [],
    exposed: [],
    unfit: [],
    defaulted: ['KEEP'],
  })
  t.deepEqual(compare({ VERSION: '', KEEP: '' }, { KEY: '' }), {
    missing: ['VERSION', 'KEY'],
    unknown: [],
    exposed: [],
    unfit: [],
    defaulted: [],
  })
  t.deepEqual(compare({ VERSION: '1', KEY: 'x', VERSOIN: '2' }, { OTHER: 'y', KEEP: '4' }), {
    missing: [],
    unknown: ['VERSOIN', 'OTHER'],
    exposed: ['KEY'],
    unfit: [],
    defaulted: [],
  })
  t.deepEqual(compareParams([], new Map([['ANY', '1']]), new Map(), () => true).unknown, [])
})
