import { execFileSync } from 'node:child_process'
import test from 'ava'
import fc from 'fast-check'
import { quoted, readShellLine } from '../../../src/cli/completion/shells.ts'

const lines: [string, string[], string, string][] = [
  ['rsm hosts sh', ['rsm', 'hosts'], 'sh', ''],
  ['rsm hosts ', ['rsm', 'hosts'], '', ''],
  ["rsm exec -w 'web1,@ro", ['rsm', 'exec', '-w'], 'web1,@ro', "'"],
  ['rsm exec -w "a \\"b', ['rsm', 'exec', '-w'], 'a "b', '"'],
  ["rsm scripts show 'it'\\''s", ['rsm', 'scripts', 'show'], "it's", "'"],
  ['rsm x my\\ cl', ['rsm', 'x'], 'my cl', ''],
  ["rsm x '' y", ['rsm', 'x', ''], 'y', ''],
  ['date; echo x | rsm ho', ['rsm'], 'ho', ''],
  ['rsm x 2>&1 y', ['rsm', 'x'], 'y', ''],
  ['rsm x 2>/tmp/log y', ['rsm', 'x'], 'y', ''],
]
for (const [line, words, current, quote] of lines)
  test(`${line} is split as a shell splits it`, (t) => {
    t.like(readShellLine(line), { words, current, quote, isExpanded: false, isRedirection: false })
  })

test('expansions and targets of redirections are recognized', (t) => {
  t.true(readShellLine('rsm show $HO').isExpanded)
  t.true(readShellLine('rsm show "`x').isExpanded)
  t.false(readShellLine("rsm show '$HO").isExpanded)
  t.true(readShellLine('rsm show 2> x').isRedirection)
})

test('bash reads quoted text unchanged, in and out of quotes, and runs none of it', (t) => {
  const text = fc.string({
    unit: fc.constantFrom(...Array.from('ab \t$`"\'\\!*?[]{}()<>|;&#~^=:,@%-é')),
    maxLength: 12,
  })
  const texts = fc.sample(text, { numRuns: 300, seed: 42 })
  const words = texts.flatMap((each) =>
    (['', "'", '"'] as const).flatMap((quote) => {
      const typed = quoted(each, quote)
      // An empty word needs quotes.
      return typed === undefined || (quote === '' && each === '')
        ? []
        : [{ each, word: quote + typed + quote }]
    }),
  )
  const script = words.map(({ word }) => `printf '%s\\0' ${word}`).join('\n')
  const read = execFileSync('bash', ['--norc', '--noprofile'], { input: script, encoding: 'utf8' }).split(
    '\0',
  )
  t.deepEqual(
    read.slice(0, -1),
    words.map(({ each }) => each),
  )
  for (const { each, word } of words) t.is(readShellLine(word).current, each)
})
