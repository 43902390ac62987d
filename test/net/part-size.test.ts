import test from 'ava'
import { PartSize } from '../../src/net/request.ts'

const KiB = 1024
const MiB = 1024 * KiB

test('parts begin at 512 KiB, and grow up to eightfold, to the bytes sent in one second', (t) => {
  for (const [took, grown] of [
    [1, 4 * MiB],
    [125, 4 * MiB],
    [200, 2.5 * MiB],
    [500, MiB],
    [999, MiB],
    [1000, 512 * KiB],
    [5000, 512 * KiB],
  ] as const) {
    const parts = new PartSize(64 * MiB)
    t.is(parts.bytes, 512 * KiB)
    parts.took(took)
    t.is(parts.bytes, grown, `${took} ms`)
  }
})

test('parts stay between 64 KiB and the maximum, and are whole bytes', (t) => {
  const parts = new PartSize(16 * MiB)
  for (let n = 0; n < 5; n++) parts.took(1)
  t.is(parts.bytes, 16 * MiB)
  for (let n = 0; n < 20; n++) parts.took(60_000)
  t.is(parts.bytes, 64 * KiB)
  parts.took(0)
  t.is(parts.bytes, 512 * KiB)
})
