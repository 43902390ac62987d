import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

const numbersIn = (text: string, pattern: RegExp) =>
  new Set([...text.matchAll(pattern)].map(([, number]) => number ?? ''))

const page = readFileSync('docs/attacked.md', 'utf8')
const sources = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => [name, readFileSync(join('test', name), 'utf8')] as const)

test('docs/attacked.md tells of each number that a title begins with, and of no other', (t) => {
  const listed = numbersIn(page, /^\| (A\d\d) \|/gm)
  const titled = numbersIn(sources.map(([, text]) => text).join('\n'), /['"`](A\d\d) [^'"`\n]/g)
  t.deepEqual([...listed].toSorted(), [...titled].toSorted())
})

test('each test that docs/attacked.md names is there', (t) => {
  const named = [...page.matchAll(/^\| (A\d\d) \|.*\| ([^|]+) \|$/gm)].flatMap(([, number, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => ({ number, path })),
  )
  t.true(named.length > 18)
  const missing = named.filter(
    ({ number, path }) =>
      !sources.some(([name, text]) => name.startsWith(path) && new RegExp(`['"\`]${number} `).test(text)),
  )
  t.deepEqual(missing, [])
})
