import test from 'ava'
import { renderMetrics, sparkline } from '../../../src/cli/hosts/metrics-view.ts'
import { metrics } from '../../helpers/metrics/metrics.ts'

process.env['LC_ALL'] = 'C.UTF-8'
const scale = { from: 0, to: 80, top: 100 }
const readings = [0, 15, 30, 45, 60, 75, 90, 100].map((value, place) => ({ at: place * 10, value }))

test('a sparkline ranges from empty to full blocks', (t) => {
  t.is(sparkline(readings, scale, 8), '▁▂▃▄▅▇██')
})

test('a sparkline keeps peaks, and leaves time without readings blank', (t) => {
  t.is(sparkline(readings, scale, 2), '▄█')
  t.is(sparkline(readings, { ...scale, to: 160 }, 4), '▄█  ')
  t.is(sparkline([], scale, 3), '   ')
})

test('a sparkline of zeros, or of a single moment, is drawn', (t) => {
  t.is(sparkline([{ at: 5, value: 0 }], { from: 5, to: 5, top: 0 }, 3), '▁  ')
})

test.serial('a sparkline is ASCII if the locale is not UTF-8', (t) => {
  process.env['LC_ALL'] = 'C'
  t.teardown(() => {
    process.env['LC_ALL'] = 'C.UTF-8'
  })
  t.is(sparkline(readings, scale, 8), '_.:-=*##')
})

const at = (minutes: number) => new Date(minutes * 60_000).toISOString()
const history = {
  hostId: 1,
  from: at(0),
  to: at(60),
  samples: [
    metrics(at(0), { cpu: 10, disks: { '/': 40 } }),
    metrics(at(30), { cpu: 100, disks: { '/': 42, '/mnt\u001b[2J': 93 } }),
    metrics(at(59), { cpu: 40, disks: { '/': 41 } }),
  ],
}

test('each metric has a line with its lowest, average, highest and last value, and its history', (t) => {
  const [head, ...lines] = renderMetrics(history, 60).split('\n')
  t.regex(head ?? '', /^SERIES +MIN +AVG +MAX +LAST +HISTORY$/)
  t.deepEqual(
    lines.map((line) => line.split(/ {2,}/).slice(0, 5)),
    [
      ['cpu', '10.0 %', '50.0 %', '100.0 %', '40.0 %'],
      ['load 1m', '0.42', '0.42', '0.42', '0.42'],
      ['memory', '30.2 %', '30.2 %', '30.2 %', '30.2 %'],
      ['disk /', '40.0 %', '41.0 %', '42.0 %', '41.0 %'],
      ['disk /mnt', '93.0 %', '93.0 %', '93.0 %', '93.0 %'],
      ['net in', '18.2 kB/s', '18.2 kB/s', '18.2 kB/s', '18.2 kB/s'],
      ['net out', '9.0 kB/s', '9.0 kB/s', '9.0 kB/s', '9.0 kB/s'],
    ],
  )
  t.regex(lines[0] ?? '', /▁ +█ +▄$/)
})

for (const width of [10, 60, 80, 300])
  test(`on a terminal of ${width} columns the history fits, or has its smallest width`, (t) => {
    for (const line of renderMetrics(history, width).split('\n')) t.true(line.length <= Math.max(width, 68))
  })
