import test from 'ava'
import fc from 'fast-check'
import { packSamples, unpackSamples } from '../../../../src/server/storage/postgres/stored-samples.ts'
import { encodeSample, parseSample, type SampleRow } from '../../../../src/server/storage/samples.ts'
import { metrics } from '../../../helpers/metrics/metrics.ts'

const numbers = fc.oneof(
  fc.integer({ min: 0, max: 100_000 }),
  fc.integer({ min: 0, max: 1000 }).map((tenths) => tenths / 10),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value)),
  fc.constantFrom(2 ** 53, -1, 0.1 + 0.2, 1e300, Number.MAX_SAFE_INTEGER),
)
const row: fc.Arbitrary<SampleRow> = fc.record({
  numbers: fc.array(numbers, { minLength: 12, maxLength: 12 }),
  disks: fc.array(fc.tuple(fc.constantFrom('/', '/var', '/a "b"\n\u2028c'), numbers, numbers, numbers), {
    maxLength: 3,
  }),
})

test('samples are unpacked unchanged, whatever their numbers and disks', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 20 }), async (rows) => {
      t.deepEqual(await unpackSamples(await packSamples(rows)), rows)
    }),
    { numRuns: 200 },
  )
})

test('an hour of samples of a host takes less than 20 bytes per sample', async (t) => {
  let seed = 1
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed / 2 ** 31
  }
  const rows: SampleRow[] = []
  for (let minute = 0; minute < 60; minute++) {
    const at = 1_790_000_000_000 + minute * 60_000 + Math.round(random() * 20)
    const sample = metrics('', { cpu: Math.round(random() * 300) / 10, disks: { '/': 40, '/var': 71.3 } })
    const usedMB = 1187 + Math.round(random() * 40)
    sample.memory = {
      totalMB: 3926,
      usedMB,
      availableMB: 3926 - usedMB,
      usagePercent: Math.round((usedMB / 3926) * 1000) / 10,
    }
    sample.cpu.loadAvg1m = Math.round(random() * 80) / 100
    sample.cpu.loadAvg5m = Math.round(random() * 50) / 100
    sample.cpu.loadAvg15m = Math.round(random() * 20) / 100
    sample.network = {
      rxBytesPerSec: Math.round(random() * 30_000),
      txBytesPerSec: Math.round(random() * 20_000),
      connections: 50 + Math.round(random() * 9),
    }
    const parsed = parseSample(encodeSample(at, sample))
    if (parsed) rows.push(parsed)
  }
  const packed = await packSamples(rows)
  t.log(`${(packed.length / rows.length).toFixed(1)} bytes a sample`)
  t.true(packed.length / rows.length < 20)
  t.deepEqual(await unpackSamples(packed), rows)
})
