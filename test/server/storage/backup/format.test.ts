import test from 'ava'
import { decoded } from '../../../../src/server/storage/backup/format.ts'

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

test('a blob whose size cannot be counted is refused', async (t) => {
  for (const size of [-1, 0.5, 1e300, '1', null, undefined]) {
    const stream = decoded('output', bytes(`${JSON.stringify({ id: 'x', bytes: size })}\nx`))
    await t.throwsAsync(() => stream.next(), { code: 'invalid', message: /has no size$/ }, String(size))
  }
})
