import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { FormatOptions, OutputFormat } from '../../../src/cli/output/format.ts'
import { type FormatName, formats } from '../../../src/cli/output/formats.ts'
import { OutdirOutput } from '../../../src/cli/output/outdir.ts'
import { entryOf, resultOf, taskOf } from '../../fixtures/fake-server.ts'
import { formatOptions } from '../../fixtures/format-options.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { missing } from '../../helpers/terminals/tmux.ts'

const esc = '\u001b'
/** Hostile output of a host, in the pieces in which it arrives. */
const hostile: Record<string, string[]> = {
  'colours, cut in two': [`${esc}[3`, `1mred${esc}[0m\n`],
  'the clipboard (OSC 52)': [`${esc}]52;c;cm0gLXJmIC8=\u0007x\n`, `${esc}]52;c;Zm9v${esc}\\y\n`],
  'cursor and screen': [`${esc}[2J${esc}[1;1H${esc}cweb2: forged\n`],
  'CRLF, cut in two': ['one\r', '\ntwo\r\n'],
  'a lone CR': ['10 %\r20 %\rweb2: forged\r'],
  '10 MB without a line end': ['x'.repeat(10 * 1024 * 1024)],
  NUL: ['a\u0000b\u0000\n'],
  'eight-bit sequences': ['\u009b2J\u009d0;x\u009c\u007f\n'],
  'bidirectional marks': ['\u202egnp.exe\u202c \u2066x\u2069 \u202a\u202b\u202d\u2067\u2068\n'],
  'replaced invalid UTF-8': ['a\ufffdb\n'],
  'lone surrogates': ['a\ud800b\udc00c\n'],
  'the end of CDATA, and entities': ['a]]>b<c>&d;</system-out><testcase name="x">\n'],
  'workflow commands': [
    '::add-mask::a\n \t::set-output name=a::b\n\u00a0\ufeff::error::x\r::stop-commands::t\n',
  ],
  'old workflow commands': ['##[error]x\na ##[add-mask]b\n##[group]\n###[[x\n'],
  'Markdown and HTML': ['| a | `b` <script>alert(1)</script> [x](javascript:y)\n---\n'],
  'a group of its own': ['::endgroup::\n---------------\nweb9\n---------------\n'],
}

/** Never shown to people: control characters except tab and line feed, and bidirectional marks. */
const shownNever = /[^\P{Cc}\t\n]|[\u202a-\u202e\u2066-\u2069]/u

async function show(
  name: FormatName,
  pieces: readonly string[],
  more: Partial<FormatOptions> = {},
): Promise<string> {
  const texts: string[] = []
  const sink = { write: (text: string) => void texts.push(text) }
  await feed(await formats[name].open(formatOptions({ stdout: sink, stderr: sink, ...more })), pieces)
  return texts.join('')
}

async function feed(format: OutputFormat, pieces: readonly string[]): Promise<void> {
  for (const stream of ['stdout', 'stderr'] as const)
    for (const data of pieces)
      await format.event({ type: 'output', entry: entryOf('web1', data, { stream }) })
  await format.event({ type: 'output', entry: entryOf('web2', 'good\n') })
  const results = [
    resultOf('web1', { status: 'FAILED', exitCode: 1, error: pieces.join('').slice(0, 200) }),
    resultOf('web2'),
  ]
  for (const result of results) await format.event({ type: 'host', result })
  await format.end(taskOf(results, { scriptName: pieces.join('').slice(0, 50) }))
}

const plain = (t: ExecutionContext, text: string) => t.is(shownNever.exec(text), null)

/** Checks that each format passes for any output. */
const holds: Record<
  FormatName | 'outdir',
  (t: ExecutionContext, pieces: readonly string[]) => Promise<void>
> = {
  async live(t, pieces) {
    const text = await show('live', pieces)
    plain(t, text)
    for (const line of text.trimEnd().split('\n')) t.true(/^web[12]: /.test(line), line.slice(0, 80))
    plain(t, await show('live', pieces, { alone: true, prefix: false }))
  },
  async grouped(t, pieces) {
    plain(t, await show('grouped', pieces))
    plain(t, await show('grouped', pieces, { diff: true }))
  },
  async ndjson(t, pieces) {
    const text = await show('ndjson', pieces)
    plain(t, text)
    const lines = text.trimEnd().split('\n')
    const objects = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    const data = objects.filter(
      ({ type, hostId, stream }) => type === 'output' && hostId === 1 && stream === 'stdout',
    )
    t.is(data.map((each) => each['data']).join(''), pieces.join(''))
    t.is(objects.at(-1)?.['type'], 'end')
  },
  async junit(t, pieces) {
    const text = await show('junit', pieces)
    plain(t, text)
    t.false(/\p{Surrogate}/u.test(text))
    t.false(/[\ufffe\uffff]/.test(text))
    const elements = text.match(/<[^<>]*>/g) ?? []
    const rest = text.replace(/<[^<>]*>/g, '').replace(/&(?:amp|lt|gt|quot|#\d+);/g, '')
    t.false(/[<>&]/.test(rest))
    t.is(elements.filter((element) => element.startsWith('<testcase ')).length, 2)
  },
  async github(t, pieces) {
    for (const raw of [false, true]) {
      const text = await show('github', pieces, { raw })
      if (!raw) plain(t, text)
      t.false(text.includes('##['))
      const commands = text
        .split(/[\r\n]/)
        .map((line) => line.trimStart())
        .filter((line) => line.startsWith('::'))
      const names = commands.map((line) => /^::(\w+)/.exec(line)?.[1])
      t.deepEqual(names, ['group', 'endgroup', 'group', 'endgroup', 'error'])
    }
  },
  async outdir(t, pieces) {
    const path = temporaryDirectory(t)
    await feed(new OutdirOutput(path), pieces)
    t.is(readFileSync(join(path, 'web1.out'), 'utf8'), Buffer.from(pieces.join('')).toString())
    t.is(readFileSync(join(path, 'web2.err'), 'utf8'), '')
  },
}

for (const [format, check] of Object.entries(holds))
  for (const [what, pieces] of Object.entries(hostile))
    test(`S06 output of hosts stays data in ${format}: ${what}`, (t) => check(t, pieces))

const withXmllint = missing('xmllint').length === 0 ? test : test.skip

withXmllint('S06 xmllint accepts the JUnit XML of all hostile output', async (t) => {
  const path = join(temporaryDirectory(t), 'report.xml')
  for (const raw of [false, true]) {
    writeFileSync(path, await show('junit', Object.values(hostile).flat(), { raw }))
    const schema = resolve('test/fixtures/junit.xsd')
    t.notThrows(() =>
      execFileSync('xmllint', ['--noout', '--nonet', '--huge', '--schema', schema, path], { stdio: 'pipe' }),
    )
  }
})
