import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'ava'

function files(directory: string, named = /\.(ts|tsx|js|md|sh|service|yml)$/): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => named.test(path) && !path.includes('node_modules') && path !== 'test/documents.test.ts')
}
const ascending = (a = '', b = '') => (a < b ? -1 : 1)
const read = (path: string) => readFileSync(path, 'utf8')
const pages = ['README.md', ...files('docs'), ...files('examples').filter((path) => path.endsWith('.md'))]
const code = [
  ...['src', 'test', 'bench', 'examples', 'bin', 'packaging', '.ci'].flatMap((directory) => files(directory)),
  ...files('packaging', /spec$|sysusers$|\/debian\//),
  '.ci/run',
]
const everything = [...new Set([...pages, ...code])].map((path) => [path, read(path)] as const)

const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
/** The anchors of a page's headings, as on GitHub. */
const anchorsOf = (page: string) =>
  [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))

test('every link of a page leads to an existing file and heading', (t) => {
  const broken: string[] = []
  let seen = 0
  for (const page of pages)
    for (const [, target = ''] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue
      seen++
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? page : join(dirname(page), path)
      const isThere = existsSync(file) && (anchor === undefined || anchorsOf(read(file)).includes(anchor))
      if (!isThere) broken.push(`${page}: ${target}`)
    }
  t.deepEqual(broken, [])
  t.true(seen > 60, String(seen))
})

test('every page named by its path in code, tests and pages exists', (t) => {
  const missing = everything.flatMap(([path, text]) =>
    [...text.matchAll(/\bdocs\/[\w/-]+\.md\b/g)]
      .filter(([named]) => !existsSync(named))
      .map(([named]) => `${path}: ${named}`),
  )
  t.deepEqual(missing, [])
})

test('every source file named by its path in a comment or a page exists', (t) => {
  const sources = [...files('src'), ...files('test'), ...files('bench')].map((path) => `/${path}`)
  // Tests name files that do not exist; the compiler checks the paths of imports.
  const named = everything.filter(([path]) => path.endsWith('.md') || /^(?:src|bin|\.ci)\//.test(path))
  const missing = named.flatMap(([path, text]) =>
    [
      ...text
        .replaceAll(/(?:from |import\()?(['"])\.{1,2}\/[^'"]*\1/g, '')
        .matchAll(/\b[a-z][\w-]*(?:\/[\w-]+)+\.tsx?\b/g),
    ]
      .filter(([file]) => !sources.some((source) => source.endsWith(`/${file}`)))
      .map(([file]) => `${path}: ${file}`),
  )
  t.deepEqual(missing, [])
})

test('the HAProxy configuration in the docs equals that of examples/cluster, which tests use', (t) => {
  t.true(
    read('docs/operate/several-servers.md').includes(`\`\`\`\n${read('examples/cluster/haproxy.cfg')}\`\`\``),
  )
})

test('the README is short enough to read in a minute', (t) => {
  t.true(read('README.md').trimEnd().split('\n').length <= 120)
})

test('the table of the contract has a row with a link for each section, in order', (t) => {
  const contract = read('docs/contract.md')
  const rows = [...contract.matchAll(/^\| \[(\d+)\]\((#[^)]+)\) \| \S/gm)].map(
    ([, number, to]) => `${number} ${to}`,
  )
  const sections = [...contract.matchAll(/^## ((\d+)\. .+)$/gm)].map(
    ([, heading = '', number]) => `${number} #${anchorOf(heading)}`,
  )
  t.true(sections.length > 15)
  t.deepEqual(rows, sections)
})

test('the map of the documentation names every page', (t) => {
  const map = read('docs/README.md')
  const named = new Set([...map.matchAll(/\]\(([^)]+\.md)\)/g)].map(([, path = '']) => join('docs', path)))
  const unnamed = files('docs').filter((path) => !named.has(path) && !path.startsWith('docs/inside/adr/'))
  t.deepEqual(unnamed, ['docs/README.md'])
})

/** The sections of a page by the number of their heading. */
const sectionsOf = (page: string) =>
  new Map(
    [...page.matchAll(/^## (\d+)\. [\s\S]*?(?=^## |(?![\s\S]))/gm)].map(([text, number = '']) => [
      number,
      text,
    ]),
  )
/** Joins the lines of a text and of its comments, because a citation may span lines. */
const inOneLine = (text: string) => text.replaceAll(/\s*\n\s*(?:\*(?!\/)|\/\/|#)?\s*/g, ' ')
/** Whether a section or page has a heading, or a paragraph in bold, that begins with `title`. */
const begins = (text: string, title: string) =>
  new RegExp(`^(#+ |- \\*\\*|\\*\\*)${title.replaceAll(/[.*+?()]/g, '\\$&')}`, 'm').test(text)

test('every citation has an existing target', (t) => {
  const contract = sectionsOf(read('docs/contract.md'))
  const reliability = read('docs/reliability.md')
  const base = read('docs/reference/base-api.md')
  const lost: string[] = []
  let seen = 0
  for (const [path, broken] of everything) {
    const text = inOneLine(broken)
    const cite = (found: boolean, what: string) => {
      seen++
      if (!found) lost.push(`${path}: ${what}`)
    }
    for (const [what, sections = '', title] of text.matchAll(
      /[Cc]ontract ((?:§\d+(?:, )?)+)(?: "([^"\n]+)")?/g,
    ))
      for (const [, number = ''] of sections.matchAll(/§(\d+)/g)) {
        const section = contract.get(number)
        cite(section !== undefined && (title === undefined || begins(section, title)), what)
      }
    for (const [what, number] of text.matchAll(/[Rr]eliability ([A-Z]\d\d)\b/g))
      cite(reliability.includes(`\n| ${number} |`), what)
    for (const [what, title = ''] of text.matchAll(/[Rr]eliability "([^"\n]+)"/g))
      cite(begins(reliability, title), what)
    for (const [what, title = ''] of text.matchAll(/base-api "([^"\n]+)"/g)) cite(begins(base, title), what)
  }
  t.deepEqual(lost, [])
  t.true(seen > 250, String(seen))
})

test('no document outside the repository is cited', (t) => {
  const outside =
    /contract-\d|\b(?:design|growth|house|toolchain|seed|style|packaging|use|attack)\.md|seed-only|\s\(seed[,)]|seed "|the seed's/
  const citing = everything.filter(([, text]) => outside.test(text)).map(([path]) => path)
  t.deepEqual(citing, [])
})

test('docs/reference/cli.md lists every command once', (t) => {
  const { commands } = JSON.parse(read('oclif.manifest.json')) as { commands: Record<string, unknown> }
  const rows = read('docs/reference/cli.md').match(/^\| `rsm .*$/gm) ?? []
  const named = rows.flatMap((row) =>
    [...(row.split(' | ')[0] ?? '').matchAll(/`rsm ([^`]+)`/g)].map(([, id]) => id),
  )
  t.deepEqual(
    named.toSorted(ascending),
    Object.keys(commands)
      .map((id) => id.replaceAll(':', ' '))
      .toSorted(ascending),
  )
})

test('every file named in docs/inside/contributing.md exists', (t) => {
  const named = [...read('docs/inside/contributing.md').matchAll(/`((?:src|test|\.ci)\/[\w./-]+)`/g)]
  t.true(named.length > 25)
  t.deepEqual(
    named.map(([, path = '']) => path).filter((path) => !existsSync(path)),
    [],
  )
})

test('every source file named in docs/inside exists', (t) => {
  const missing: string[] = []
  let seen = 0
  for (const page of pages.filter((path) => path.startsWith('docs/inside/')))
    for (const [, path = ''] of read(page).matchAll(/`([a-z][\w./-]*\.tsx?)[`#:]/g)) {
      seen++
      if (!existsSync(path) && !code.some((file) => file.endsWith(`/${path}`)))
        missing.push(`${page}: ${path}`)
    }
  t.true(seen > 100)
  t.deepEqual(missing, [])
})
