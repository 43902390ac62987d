import type { Metrics } from '../../core/hosts/host.ts'
import type { HostMetrics } from '../../core/protocol/http/hosts.ts'
import { showBytes } from '../text/amounts.ts'
import { isUtf8 } from '../text/screen.ts'
import { type Column, renderTable } from '../text/table.ts'

const narrowest = 10
const widest = 120
const usualWidth = 80
const gap = 2

const bars = '▁▂▃▄▅▆▇█'
const asciiBars = '_.:-=+*#'

interface Reading {
  readonly at: number
  readonly value: number
}

interface Series {
  readonly name: string
  readonly show: (value: number) => string
  /** End of the scale; by default the highest value. */
  readonly full?: number
  readonly readings: Reading[]
}

interface Scale {
  readonly from: number
  readonly to: number
  readonly top: number
}

const columns: readonly Column<Series>[] = [
  { heading: 'SERIES', value: ({ name }) => name },
  { heading: 'MIN', value: (series) => series.show(lowestOf(series)) },
  { heading: 'AVG', value: (series) => series.show(averageOf(series)) },
  { heading: 'MAX', value: (series) => series.show(highestOf(series)) },
  { heading: 'LAST', value: ({ readings, show }) => show(readings.at(-1)?.value ?? 0) },
]

/** One line per measure: minimum, average, maximum, last value, and a history in the remaining width. */
export function renderMetrics(
  { from, to, samples }: HostMetrics,
  width: number = process.stdout.columns || usualWidth,
): string {
  const series = seriesOf(samples)
  const taken = columns.reduce((sum, { heading, value }) => {
    const cells = series.map((each) => String(value(each)).length)
    return sum + gap + Math.max(heading.length, ...cells)
  }, 0)
  const length = Math.min(widest, Math.max(narrowest, width - taken))
  const scale = { from: Date.parse(from), to: Date.parse(to) }
  return renderTable(series, [
    ...columns,
    {
      heading: 'HISTORY',
      value: (each) => sparkline(each.readings, { ...scale, top: each.full ?? highestOf(each) }, length),
    },
  ])
}

function seriesOf(samples: readonly Metrics[]): Series[] {
  const over = (pick: (sample: Metrics) => number | undefined): Reading[] =>
    samples.flatMap((sample) => {
      const value = pick(sample)
      return value === undefined ? [] : [{ at: Date.parse(sample.timestamp), value }]
    })
  const mounts = [...new Set(samples.flatMap(({ disk }) => disk.map(({ mountPoint }) => mountPoint)))]
  const usage = ({ disk }: Metrics, mount: string) =>
    disk.find(({ mountPoint }) => mountPoint === mount)?.usagePercent
  const disks = mounts.map((mount) => ({
    name: `disk ${mount}`,
    show: percent,
    full: 100,
    readings: over((sample) => usage(sample, mount)),
  }))
  return [
    { name: 'cpu', show: percent, full: 100, readings: over(({ cpu }) => cpu.usagePercent) },
    { name: 'load 1m', show: load, readings: over(({ cpu }) => cpu.loadAvg1m) },
    { name: 'memory', show: percent, full: 100, readings: over(({ memory }) => memory.usagePercent) },
    ...disks,
    { name: 'net in', show: rate, readings: over(({ network }) => network.rxBytesPerSec) },
    { name: 'net out', show: rate, readings: over(({ network }) => network.txBytesPerSec) },
  ]
}

const percent = (value: number) => `${value.toFixed(1)} %`
const load = (value: number) => value.toFixed(2)
const rate = (value: number) => `${showBytes(value)}/s`

const highestOf = ({ readings }: Series) =>
  readings.reduce((top, { value }) => Math.max(top, value), Number.NEGATIVE_INFINITY)
const lowestOf = ({ readings }: Series) =>
  readings.reduce((low, { value }) => Math.min(low, value), Number.POSITIVE_INFINITY)
const averageOf = ({ readings }: Series) =>
  readings.reduce((sum, { value }) => sum + value / readings.length, 0)

/** One character per equal part of the time, from 0 to `top`: its highest reading, or blank. */
export function sparkline(readings: readonly Reading[], scale: Scale, width: number): string {
  const { from, to, top } = scale
  const marks = isUtf8() ? bars : asciiBars
  const highest: (number | undefined)[] = Array.from({ length: width })
  const part = Math.max(1, to - from) / width
  for (const { at, value } of readings) {
    const place = Math.min(width - 1, Math.max(0, Math.floor((at - from) / part)))
    highest[place] = Math.max(highest[place] ?? 0, value)
  }
  const level = (value: number) =>
    Math.min(marks.length - 1, Math.floor((Math.min(value, top) / (top || 1)) * marks.length))
  return highest.map((value) => (value === undefined ? ' ' : (marks[level(value)] ?? ' '))).join('')
}
