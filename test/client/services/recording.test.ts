import test from 'ava'
import { readRecording } from '../../../src/client/services/recording.ts'

async function* inChunks(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const header = '{"version":2,"width":80,"height":24}\n'
const cases: [title: string, text: string, expected: string][] = [
  ['that is whole', `${header}[0.1,"o","漢"]\n[0.2,"r","90x30"]\n[1,"o","字"]\n`, '漢90x30字'],
  ['without a final line end', `${header}[0.1,"o","a"]`, 'a'],
  ['torn in its last line', `${header}[0.1,"o","a"]\n[0.2,"o","b`, 'a'],
  ['with an invalid event', `${header}[0.1,"o","a"]\n\n{"no":"event"}\n[2,"o","b"]\n`, 'a'],
  ['with only its header', header, ''],
]
for (const [title, text, expected] of cases)
  for (const size of [1, 7, 100_000])
    test(`a recording ${title} is read up to its first fault, in pieces of ${size}`, async (t) => {
      const recording = await readRecording(inChunks(text, size), 'it')
      t.is(recording.header.width, 80)
      let got = ''
      for await (const [, , data] of recording.events) got += data
      t.is(got, expected)
    })

for (const text of ['', 'text', '{"version":1,"width":80,"height":24}\n', '[]\n', '{"version":2}\n'])
  test(`a file is not a recording: ${JSON.stringify(text)}`, async (t) => {
    await t.throwsAsync(readRecording(inChunks(text, 9), 'x.cast'), { message: /x\.cast is not a recording/ })
  })

for (const [width, height, cols, rows] of [
  [1_000_000_000, 24, 1000, 24],
  [-5, 24, 80, 24],
  [0, 0, 80, 24],
] as const)
  test(`a recording with the size ${width}x${height} is read as ${cols}x${rows}`, async (t) => {
    const text = JSON.stringify({ version: 2, width, height })
    const { header } = await readRecording(inChunks(`${text}\n`, 100), 'x.cast')
    t.deepEqual([header.width, header.height], [cols, rows])
  })
