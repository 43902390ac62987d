import test from 'ava'
import fc from 'fast-check'
import { createDirectory } from '../../../src/core/selector/directory.ts'
import { expandNodeset, foldNodeset } from '../../../src/core/selector/nodeset.ts'
import { parseSelector } from '../../../src/core/selector/parse.ts'
import { resolveNow } from '../../helpers/selectors/at-once.ts'
import { askNodeset, hasNodeset } from '../../helpers/selectors/clustershell.ts'
import { index, name, nodeset, part } from '../../helpers/selectors/nodesets.ts'

// Runs where Debian's clustershell is installed: it needs nodeset for comparison (2026-11-21).
const withNodeset = hasNodeset() ? test : test.skip
const seed = Number(process.env.RSM_TEST_SEED ?? Date.now() % 1_000_000)

const joined = (names: readonly string[]) => [...names].sort().join(' ')

withNodeset('node sets expand as with nodeset -e', (t) => {
  const cases = fc.sample(nodeset, { seed, numRuns: 3000 })
  const answers = askNodeset(cases.map((nodes) => ({ command: '-e', nodes })))
  for (const [at, text] of cases.entries()) {
    const answer = answers[at]
    if (answer instanceof Error)
      t.throws(() => expandNodeset(text), undefined, `seed ${seed}: ${text}: ${answer.message}`)
    else if (!t.is(joined(expandNodeset(text)), answer ?? '', `seed ${seed}: ${text}`)) return
  }
  t.log(`${cases.length} node sets, seed ${seed}`)
})

withNodeset('names with one number fold to the exact text of nodeset -f', (t) => {
  const single = fc.tuple(part, index).map(([prefix, n]) => prefix + n)
  const cases = fc.sample(fc.array(single, { minLength: 1, maxLength: 60 }), { seed, numRuns: 2000 })
  const answers = askNodeset(cases.map((names) => ({ command: '-f', nodes: names.join(',') })))
  for (const [at, names] of cases.entries())
    if (!t.is(foldNodeset(names), answers[at] as string, `seed ${seed}: ${names.join(',')}`)) return
  t.log(`${cases.length} lists, seed ${seed}`)
})

withNodeset('names with two numbers fold to a text that nodeset -e expands to the same names', (t) => {
  const cases = fc.sample(fc.array(name, { minLength: 1, maxLength: 40 }), { seed, numRuns: 1000 })
  const folded = cases.map((names) => foldNodeset(names))
  const back = askNodeset(folded.map((nodes) => ({ command: '-e', nodes })))
  const theirs = askNodeset(cases.map((names) => ({ command: '-f', nodes: names.join(',') })))
  let same = 0
  for (const [at, names] of cases.entries()) {
    if (!t.is(back[at] as string, joined([...new Set(names)]), `seed ${seed}: ${names.join(',')}`)) return
    if (theirs[at] === folded[at]) same++
  }
  t.log(`${cases.length} lists, ${same} of them with identical text, seed ${seed}`)
})

const clusters = {
  front: 'web[1-4]',
  back: 'db[01-03],web4',
  'rack-1': 'r1n[1-4]',
  'rack-2': 'r2n[1-4]',
  one: 'db02',
}
const tags = {
  env: { prod: 'web[1-6],db01', test: 'web[7-12]', spare: 'r1n1,r2n1' },
  zone: { a: 'web[1-12/2],r1n[1-4]', b: 'web[2-12/2],r2n[1-4]' },
}
const every = 'web[1-12],db[01-06],r[1-2]n[1-4]'

function fleet() {
  const hosts = expandNodeset(every).map((hostname, at) => ({
    id: at + 1,
    hostname,
    tags: Object.fromEntries(
      Object.entries(tags).flatMap(([key, values]) =>
        Object.entries(values).flatMap(([value, nodes]) =>
          expandNodeset(nodes).includes(hostname) ? [[key, value]] : [],
        ),
      ),
    ),
    status: 'ONLINE',
    reachable: true,
    noLink: false,
    os: null,
    arch: null,
  }))
  const idsOf = (nodes: string) => {
    const wanted = new Set(expandNodeset(nodes))
    return hosts.filter(({ hostname }) => wanted.has(hostname)).map(({ id }) => id)
  }
  return createDirectory(
    hosts,
    Object.entries(clusters).map(([cluster, nodes]) => ({
      name: cluster,
      hostIds: idsOf(nodes),
      selector: null,
    })),
  )
}

const operand = fc.oneof(
  fc.constantFrom('web1', 'web[1-3]', 'web[2-12/3]', 'db[01-04]', 'r[1-2]n[1-2]', 'r2n[3-4]', 'db0[1-2]'),
  fc.constantFrom('web*', 'web1?', '*n1', 'db0?', 'w*[1-2]', 'none*'),
  fc.constantFrom(...Object.keys(clusters).map((cluster) => `@${cluster}`), '@rack-[1-2]', '@*'),
  fc.constantFrom('@env:prod', '@env:test', '@env:spare', '@zone:a', '@zone:b'),
)
const selector = fc
  .tuple(operand, fc.array(fc.tuple(fc.constantFrom(',', '!', '&', '^'), operand), { maxLength: 5 }))
  .map(([first, rest]) => first + rest.map(([operator, text]) => operator + text).join(''))

withNodeset('selectors with clusters, tags and wildcards match the hosts that nodeset -e lists', (t) => {
  const cases = fc.sample(selector, { seed, numRuns: 3000 })
  const groups = { every, sources: { cluster: clusters, ...tags } }
  const answers = askNodeset(
    cases.map((nodes) => ({ command: '-e', nodes })),
    groups,
  )
  const directory = fleet()
  for (const [at, text] of cases.entries()) {
    const found = resolveNow(parseSelector(text), directory).map(({ hostname }) => hostname)
    if (!t.is(joined(found), answers[at] as string, `seed ${seed}: ${text}`)) return
  }
  t.log(`${cases.length} selectors, seed ${seed}`)
})
