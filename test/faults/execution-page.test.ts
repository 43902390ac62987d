import { readFileSync } from 'node:fs'
import test from 'ava'

const pointsOf = (path: string) =>
  [...readFileSync(path, 'utf8').matchAll(/'((?:server|agent)\.[a-z]+\.[a-z]+)'/g)].map(([, name]) => name)

const ascending = (a = '', b = '') => (a < b ? -1 : 1)

// The types of these tables require each fault point in the code once.
const tables = ['test/long/windows/agent-windows.test.ts', 'test/helpers/faults/server-windows.ts']
const tested = tables.flatMap(pointsOf)

test('docs/inside/execution.md has a row for each fault point at which a test crashes, and no other', (t) => {
  t.true(tested.length > 50)
  const page = readFileSync('docs/inside/execution.md', 'utf8')
  const told = [...page.matchAll(/`((?:server|agent)\.[a-z]+\.[a-z]+)`/g)].map(([, name]) => name)
  t.deepEqual([...new Set(told)].toSorted(ascending), [...new Set(tested)].toSorted(ascending))
})

test('a fault point is an empty function in the product, without the import condition of the tests', async (t) => {
  const { imports, files } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    imports: Record<string, Record<string, string>>
    files: string[]
  }
  t.is(imports['#fault-point']?.['default'], './dist/src/core/fault-point.js')
  t.false(files.some((file) => file === 'dist' || file.startsWith('dist/test')))
  const source = readFileSync('dist/src/core/fault-point.js', 'utf8').replaceAll(
    /\/\*[\s\S]*?\*\/|\/\/.*$/gm,
    '',
  )
  t.regex(source, /^\s*export function faultPoint\(_name\) \{\s*\}\s*$/)
})
