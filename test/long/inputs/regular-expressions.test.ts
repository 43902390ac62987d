import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as breathe } from 'node:timers/promises'
import test from 'ava'
import { parseSync, Visitor } from 'oxc-parser'
import { checkSync } from 'recheck'
import { operationsOfTheApp } from '../../helpers/api/operations.ts'

/** A regular expression of src and its place. */
interface Found {
  readonly where: string
  readonly source: string
  readonly flags: string
}

/** Files whose functions build expressions from text, and why no outside text can make them slow. */
const madeInFunctions: Readonly<Record<string, string>> = {
  'server/http/known-paths.ts': 'the paths of our routes, with [^/]* for a parameter: linear',
  'cli/tui/view/log-pane.ts': 'the text of a search, with all characters escaped',
  'agent/files/worker.ts': 'the name of a line of /proc/self/task/N/status, anchored',
  'core/schedules/cron.ts':
    'one entry of a field, from a table of ours, anchored, without nested repetitions',
  'agent/processes/limits.ts': 'the name of a line of memory.events, anchored',
  'agent/reports/metrics.ts': 'the name of a line of /proc/meminfo, anchored',
  'cli/ssh/trouble.ts': 'the name of an ssh setting from our list, anchored',
}

/** Milliseconds for judging one expression. */
const timeout = 60_000

const root = new URL('../../../../src/', import.meta.url).pathname
const built = new URL('../../../src/', import.meta.url).pathname
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .toSorted()

/** Literals of a file, and the number of expressions that it builds from text outside and inside of functions. */
function readFile(file: string, text: string): { found: Found[]; made: number; madeInFunctions: number } {
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
  const found: Found[] = []
  let depth = 0
  let made = 0
  let inFunctions = 0
  const enter = () => void depth++
  const leave = () => void depth--
  const make = (callee: object) => {
    if (!('name' in callee) || callee.name !== 'RegExp') return
    if (depth > 0) inFunctions++
    else made++
  }
  new Visitor({
    FunctionDeclaration: enter,
    'FunctionDeclaration:exit': leave,
    FunctionExpression: enter,
    'FunctionExpression:exit': leave,
    ArrowFunctionExpression: enter,
    'ArrowFunctionExpression:exit': leave,
    NewExpression: ({ callee }) => make(callee),
    CallExpression: ({ callee }) => make(callee),
    Literal(node) {
      if ('regex' in node) found.push({ where: file, source: node.regex.pattern, flags: node.regex.flags })
    },
  }).visit(program)
  return { found, made, madeInFunctions: inFunctions }
}

/** Patterns of a JSON schema, as the validator compiles them. */
function ofSchema(where: string, schema: unknown): Found[] {
  if (typeof schema !== 'object' || schema === null) return []
  const own = Object.entries(schema).flatMap(([key, held]) =>
    key === 'pattern' && typeof held === 'string'
      ? [held]
      : key === 'patternProperties'
        ? Object.keys(held as object)
        : [],
  )
  return [
    ...own.map((source) => ({ where, source, flags: 'u' })),
    ...Object.values(schema).flatMap((held) => ofSchema(where, held)),
  ]
}

/** Expressions that a module builds from text while it is loaded. */
async function madeByLoading(file: string): Promise<Found[]> {
  const found: Found[] = []
  const original = RegExp
  globalThis.RegExp = new Proxy(original, {
    construct(target, [source, flags = '']: [string | RegExp, string?]) {
      const made = new target(source, flags)
      if (new Error('who').stack?.includes(join(built, file.replace(/\.tsx?$/, '.js'))) === true)
        found.push({ where: file, source: made.source, flags: made.flags })
      return made
    },
  })
  try {
    await import(`${join(built, file.replace(/\.tsx?$/, '.js'))}?again`)
  } finally {
    globalThis.RegExp = original
  }
  return found
}

/** Why the expression is not linear, with a text that shows it; null if it is. */
function faultOf({ where, source, flags }: Found): string | null {
  const judged = checkSync(source, flags, { timeout, randomSeed: 1 })
  if (judged.status === 'safe') return null
  const why =
    judged.status === 'vulnerable'
      ? `${judged.complexity.summary}: try ${judged.attack.pattern}`
      : `not judged (${judged.error.kind})`
  return `${where}: /${source}/${flags} ${why}`
}

test('A08 every regular expression of src takes linear time, including those of schemas and the console', async (t) => {
  const all = new Map<string, Found>()
  const inFunctions: string[] = []
  for (const file of files) {
    const read = readFile(file, readFileSync(join(root, file), 'utf8'))
    const loaded = read.made > 0 ? await madeByLoading(file) : []
    t.is(loaded.length, read.made, `${file}: expressions built while it is loaded`)
    if (read.madeInFunctions > 0) inFunctions.push(file)
    for (const one of [...read.found, ...loaded]) all.set(`${one.source}/${one.flags}`, one)
  }
  for (const { operation } of operationsOfTheApp())
    for (const one of ofSchema(`schemas of ${operation.id}`, [operation.query, operation.body]))
      all.set(`${one.source}/${one.flags}`, one)
  t.true(all.size > 250, `only ${all.size} were found`)
  t.deepEqual(inFunctions.toSorted(), Object.keys(madeInFunctions).toSorted())
  const faults: string[] = []
  for (const one of all.values()) {
    // Renewed for each expression, so that the runner does not time out.
    t.timeout(100_000)
    await breathe()
    const fault = faultOf(one)
    if (fault !== null) faults.push(fault)
  }
  t.deepEqual(faults, [])
})

test('A08 the check finds a quadratic regular expression in code and in schemas', (t) => {
  const {
    found,
    made,
    madeInFunctions: inFunctions,
  } = readFile(
    'x.ts',
    `const known = text.split(/\\s*,\\s*/)
    const made = new RegExp('a')
    const search = (text: string) => RegExp(text)`,
  )
  t.deepEqual([made, inFunctions], [1, 1])
  const properties = { email: { pattern: '^(a|a)*$' }, tags: { patternProperties: { '^(?:b+)+$': {} } } }
  const schema = { anyOf: [{ type: 'object', properties }] }
  t.deepEqual(
    [...found, ...ofSchema('a schema', schema)].map((one) => faultOf(one)?.replace(/: try .*/, '')),
    [
      'x.ts: /\\s*,\\s*/ 2nd degree polynomial',
      'a schema: /^(a|a)*$/u exponential',
      'a schema: /^(?:b+)+$/u exponential',
    ],
  )
  t.is(faultOf({ where: 'x.ts', source: ',', flags: '' }), null)
})
