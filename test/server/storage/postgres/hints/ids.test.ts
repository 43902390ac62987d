import test from 'ava'
import { decodeIds, encodeIds } from '../../../../../src/server/storage/postgres/hints/lines.ts'

const all = (texts: readonly string[]) => texts.flatMap(decodeIds)

test('ids are decoded in ascending order, each once, however large and far apart', (t) => {
  const sets = [[], [1], [0, 1, 127, 128, 129, 16_383, 16_384], [7, 3, 7, 2 ** 31, 2 ** 53 - 1]]
  for (const ids of sets)
    t.deepEqual(
      all(encodeIds(ids)),
      [...new Set(ids)].sort((a, b) => a - b),
    )
})

test('all ids of a large fleet are split into texts that fit into notifications', (t) => {
  const ids = Array.from({ length: 100_000 }, (_, at) => 7 * at + 1)
  const texts = encodeIds(ids)
  t.deepEqual(all(texts), ids)
  t.true(texts.every(({ length }) => length < 7_000))
})

test('a thousand ids out of a hundred thousand take less than 1.5 KB', (t) => {
  const ids = Array.from({ length: 1_111 }, (_, at) => 90 * at + (at % 37))
  const [text = '', ...more] = encodeIds(ids)
  t.deepEqual(more, [])
  t.true(text.length < 1_500, `${text.length} characters`)
})
