import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

const numbersIn = (text: string, pattern: RegExp) =>
  [...new Set([...text.matchAll(pattern)].map(([, number = '']) => number))].toSorted()

const sources = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => [name, readFileSync(join('test', name), 'utf8')] as const)
const titles = sources
  .flatMap(([, text]) => [...text.matchAll(/['"`]((?:[AFPS]\d\d )+)[^'"`\n]/g)].map(([, numbers]) => numbers))
  .join('')

const rulesOf = (page: string) => numbersIn(page, /^- \*\*(P\d\d)\*\*/gm)
const attacked = readFileSync('docs/security/attacked.md', 'utf8')
const reliability = readFileSync('docs/reliability.md', 'utf8')
const protocol = readFileSync('docs/reference/protocol.md', 'utf8')

/** Numbers with a row that names a program other than a test. */
const shownElsewhere = new Set(['S13'])

test('the numbers at the start of titles are those of the pages', (t) => {
  t.deepEqual(numbersIn(attacked, /^\| (A\d\d) \|/gm), numbersIn(titles, /(A\d\d) /g))
  t.deepEqual(
    numbersIn(reliability, /^\| ([FS]\d\d) \|/gm).filter((number) => !shownElsewhere.has(number)),
    numbersIn(titles, /([FS]\d\d) /g),
  )
  const rules = rulesOf(protocol)
  t.true(rules.length > 45)
  t.deepEqual(numbersIn(titles, /(P\d\d) /g), rules)
})

/**
 * The last cell of a row names tests and suites of test/ without extensions, such as `faults/store` and `contracts/noted-head`, or
 * other files by their path. Each contains the number.
 */
function holders(page: string) {
  return [...page.matchAll(/^\| ([AFLS]\d\d) \|.*\| ([^|]+) \|$/gm)].flatMap(([, number = '', cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => ({ number, path })),
  )
}

test('each test named in the pages exists, and has a title that begins with the number', (t) => {
  const named = [...holders(attacked), ...holders(reliability)]
  t.true(named.length > 90)
  const missing = named.filter(({ number, path }) => {
    if (existsSync(path)) return !readFileSync(path, 'utf8').includes(number)
    return !sources.some(
      ([name, text]) =>
        [`${path}.test.ts`, `${path}.ts`].includes(name) &&
        new RegExp(`['"\`](?:[A-Z]\\d\\d )*${number} `).test(text),
    )
  })
  t.deepEqual(missing, [])
})
