import test from 'ava'
import { linesOf, wholeLines } from '../../../src/client/services/audit.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { chain } from '../../helpers/audit/audit-lines.ts'

const { lines } = chain(40)
const lost = () => new RsmError('unreachable', 'connection lost in mid-answer')

/** A server whose connections end after `cuts` bytes each; the last one is not cut. */
function server(stored: readonly string[], cuts: readonly number[]) {
  const asked: (number | undefined)[] = []
  async function open(after: number | undefined): Promise<AsyncIterable<Uint8Array>> {
    const cut = cuts[asked.length]
    asked.push(after)
    const bytes = Buffer.from(
      stored
        .slice(after ?? 0)
        .map((line) => `${line}\n`)
        .join(''),
    )
    return (async function* () {
      const end = Math.min(cut ?? bytes.length, bytes.length)
      for (let at = 0; at < end; at += 100) yield bytes.subarray(at, Math.min(at + 100, end))
      if (cut !== undefined) throw lost()
    })()
  }
  return { open, asked }
}

async function all(blocks: AsyncIterable<Buffer>): Promise<string[]> {
  const got: string[] = []
  for await (const block of blocks) for (const line of linesOf(block)) got.push(line.toString('utf8'))
  return got
}

test('an audit log download cut at any byte resumes after the last whole line, with each line once', async (t) => {
  const length = Buffer.byteLength(`${lines[0]}\n`)
  for (const cut of [length, length + 1, length * 3 - 1, length * 7 + 55]) {
    const { open, asked } = server(lines, [cut, cut])
    t.deepEqual(await all(wholeLines(open)), lines)
    t.is(asked.length, 3)
    t.is(asked[1], Math.floor(cut / length))
  }
})

test('a download is not retried if its first request fails', async (t) => {
  let calls = 0
  const dead = async () => {
    calls++
    throw lost()
  }
  await t.throwsAsync(all(wholeLines(dead)), { code: 'unreachable' })
  t.is(calls, 1)
})

test('a download does not resume after a refusal or a damaged line', async (t) => {
  const refused = new RsmError('forbidden', 'for administrators')
  let calls = 0
  const first = server(lines, [1000])
  const refuses = async (after: number | undefined) =>
    calls++ === 0 ? first.open(after) : Promise.reject(refused)
  t.is(await t.throwsAsync(all(wholeLines(refuses))), refused)
  const { open } = server(['{"nonsense', ...lines], [11])
  await t.throwsAsync(all(wholeLines(open)), { message: /a download cannot resume after a damaged line/ })
})

test('a line longer than any entry ends a download instead of filling the memory', async (t) => {
  async function* endless() {
    for (;;) yield Buffer.alloc(64 * 1024, 'x')
  }
  await t.throwsAsync(all(wholeLines(async () => endless())), {
    code: 'conflict',
    message: /a line is longer than any entry/,
  })
})
