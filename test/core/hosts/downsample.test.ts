import test from 'ava'
import fc from 'fast-check'
import { createDownsample } from '../../../src/core/hosts/downsample.ts'
import type { Metrics } from '../../../src/core/hosts/host.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'

function downsample(samples: Metrics[], from: number, to: number, points: number): Metrics[] {
  const thinned = createDownsample({ from, to, points })
  for (const sample of samples) thinned.add(sample)
  return thinned.samples()
}
const at = (milliseconds: number) => new Date(milliseconds).toISOString()

test('samples become the averages of their buckets, at the start of each; empty buckets are omitted', (t) => {
  const samples = [
    metrics(at(1000), { cpu: 10 }),
    metrics(at(1200), { cpu: 20 }),
    metrics(at(1900), { cpu: 90 }),
  ]
  const thinned = downsample(samples, 1000, 2000, 4)
  t.deepEqual(
    thinned.map(({ timestamp, cpu }) => [Date.parse(timestamp), cpu.usagePercent]),
    [
      [1000, 15],
      [1750, 90],
    ],
  )
  t.deepEqual(downsample([], 1000, 2000, 4), [])
})

test('a disk is averaged over the samples that include it', (t) => {
  const samples = [
    metrics(at(0), { disks: { '/': 10, '/var': 40 } }),
    metrics(at(1), { disks: { '/': 20 } }),
    metrics(at(2), { disks: { '/': 30, '/mnt': 5 } }),
  ]
  const [sample] = downsample(samples, 0, 100, 1)
  t.deepEqual(
    sample?.disk.map(({ mountPoint, usagePercent }) => [mountPoint, usagePercent]),
    [
      ['/', 20],
      ['/var', 40],
      ['/mnt', 5],
    ],
  )
})

test('numbers too large to add up are averaged too', (t) => {
  const samples = [1, 2, 3].map((time) => metrics(at(time), { cpu: Number.MAX_VALUE }))
  const [sample] = downsample(samples, 0, 10, 1)
  t.true(Number.isFinite(sample?.cpu.usagePercent))
})

const hundredths = fc.integer({ min: 0, max: 1_000_000 }).map((value) => value / 100)
const cases = fc.record({
  from: fc.integer({ min: 0, max: 2_000_000 }),
  length: fc.integer({ min: 0, max: 1_000_000 }),
  points: fc.integer({ min: 1, max: 50 }),
  readings: fc.array(fc.record({ at: fc.integer({ min: 0, max: 3_500_000 }), cpu: hundredths }), {
    maxLength: 100,
  }),
})

test('any samples give at most the requested points, ascending, in range and between the extremes', (t) => {
  fc.assert(
    fc.property(cases, ({ from, length, points, readings }) => {
      const to = from + length
      const inside = readings.filter((reading) => reading.at >= from && reading.at <= to)
      const thinned = downsample(
        readings.map((reading) => metrics(at(reading.at), { cpu: reading.cpu })),
        from,
        to,
        points,
      )
      const times = thinned.map(({ timestamp }) => Date.parse(timestamp))
      const values = thinned.map(({ cpu }) => cpu.usagePercent)
      const given = inside.map(({ cpu }) => cpu)
      return (
        thinned.length <= Math.min(points, inside.length) &&
        thinned.length > 0 === inside.length > 0 &&
        times.every((time, place) => time >= from && time <= to && time > (times[place - 1] ?? -1)) &&
        values.every((value) => value >= Math.min(...given) && value <= Math.max(...given))
      )
    }),
  )
  t.pass()
})
