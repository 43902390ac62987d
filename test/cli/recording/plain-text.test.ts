import test from 'ava'
import { PlainText } from '../../../src/cli/recording/playback.ts'

const escape = '\u001b'

function plainOf(text: string, size: number): string {
  const plain = new PlainText()
  let got = ''
  for (let at = 0; at < text.length; at += size) got += plain.write(text.slice(at, at + size))
  return got + plain.end()
}

const cases: [title: string, text: string, expected: string][] = [
  ['plain text', 'one\r\ntwo', 'one\ntwo'],
  ['colours and a title', `${escape}]0;title\u0007${escape}[31mred${escape}[0m\r\n`, 'red\n'],
  ['lines that are overwritten', '10 %\r20 %\r\n', '10 %\n20 %\n'],
  ['a sequence cut off at the end', `text${escape}[3`, 'text'],
  ['wide characters', '漢字 🙂\r\n', '漢字 🙂\n'],
]
for (const [title, text, expected] of cases)
  for (const size of [1, 3, 1000])
    test(`a recording is converted to plain text in pieces of ${size}: ${title}`, (t) => {
      t.is(plainOf(text, size), expected)
    })

test('a line, title or sequence without an end takes bounded memory, and does not delay later output', (t) => {
  for (const endless of ['x', `${escape}]0;x`, `${escape}[1`, escape]) {
    const plain = new PlainText()
    let got = ''
    for (let at = 0; at < 300_000; at++) got += plain.write(endless)
    got += plain.write('\nend\n')
    t.true(got.endsWith('\nend\n'), JSON.stringify(endless))
    t.false(got.includes(escape))
  }
})
