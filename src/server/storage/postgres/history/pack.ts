import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import type { DiskRow, SampleRow } from '../../samples.ts'

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** Maximum decimals of numbers in samples, except those of foreign agents. */
const mostDecimals = 3
/** Limit up to which differences of integers are exact. */
const largestWhole = 2 ** 51

/**
 * One number of each sample: the count of decimals, the first number scaled to an integer, and the
 * differences. Without differences if all are equal. Numbers with more decimals follow -1 unchanged. Null if
 * the numbers derive from others.
 */
type Column = number[] | null

/** Consecutive samples with the same disks. */
type Run = [count: number, mountPoints: string[], ...columns: Column[]]

/** Indexes of numbers in a sample (sample-line.ts). */
const [total, used, available, usage] = [5, 6, 7, 8]
/** Numbers that rsm agents compute from others. */
const derived = new Map<number, (numbers: readonly number[]) => number>([
  [available, (numbers) => (numbers[total] ?? 0) - (numbers[used] ?? 0)],
  [usage, (numbers) => Math.round(((numbers[used] ?? 0) / (numbers[total] ?? 1)) * 1000) / 10],
])

/** Packs samples of a host, sorted by time, in about 15 bytes each, because consecutive ones differ little. */
export function packSamples(rows: readonly SampleRow[]): Promise<Buffer> {
  return deflate(JSON.stringify(runsOf(rows).map(encodeRun)), { level: 9 })
}

export async function unpackSamples(packed: Uint8Array): Promise<SampleRow[]> {
  const runs = JSON.parse((await inflate(packed)).toString()) as Run[]
  return runs.flatMap(decodeRun)
}

const mountsOf = ({ disks }: SampleRow) => disks.map(([mountPoint]) => mountPoint)

function runsOf(rows: readonly SampleRow[]): SampleRow[][] {
  const runs: SampleRow[][] = []
  let last = ''
  for (const row of rows) {
    const mounts = JSON.stringify(mountsOf(row))
    if (mounts === last) runs.at(-1)?.push(row)
    else runs.push([row])
    last = mounts
  }
  return runs
}

const valuesOf = ({ numbers, disks }: SampleRow) => [
  ...numbers,
  ...disks.flatMap(([, ...figures]) => figures),
]

function encodeRun(rows: readonly SampleRow[]): Run {
  const [first] = rows
  if (!first) return [0, []]
  const values = rows.map(valuesOf)
  const columns = valuesOf(first).map((_, place): Column => {
    const derive = derived.get(place)
    if (derive && values.every((row) => Object.is(row[place], derive(row)))) return null
    return encodeColumn(values.map((row) => row[place] ?? 0))
  })
  return [rows.length, mountsOf(first), ...columns]
}

function encodeColumn(values: readonly number[]): number[] {
  for (let decimals = 0; decimals <= mostDecimals; decimals++) {
    const factor = 10 ** decimals
    const wholes = values.map((value) => Math.round(value * factor))
    const isExact = wholes.every(
      (whole, at) => whole / factor === values[at] && Math.abs(whole) <= largestWhole,
    )
    if (!isExact) continue
    const [first = 0, ...rest] = wholes
    const differences = rest.map((whole, at) => whole - (wholes[at] ?? 0))
    return [decimals, first, ...(differences.some((one) => one !== 0) ? differences : [])]
  }
  return [-1, ...values]
}

function decodeColumn([decimals = 0, ...coded]: readonly number[], count: number): number[] {
  if (decimals < 0) return coded
  const factor = 10 ** decimals
  let whole = 0
  return Array.from({ length: count }, (_, at) => {
    whole += coded[at] ?? 0
    return whole / factor
  })
}

function decodeRun([count, mountPoints, ...columns]: Run): SampleRow[] {
  const figures = mountPoints.length * 3
  const decoded = columns.map((column) => (column ? decodeColumn(column, count) : null))
  return Array.from({ length: count }, (_, at) => {
    const values = decoded.map((column) => column?.[at] ?? 0)
    for (const [place, derive] of derived) if (decoded[place] === null) values[place] = derive(values)
    const numbers = values.slice(0, values.length - figures)
    const disks = mountPoints.map((mountPoint, disk): DiskRow => {
      const [totalGB = 0, usedGB = 0, usagePercent = 0] = values.slice(numbers.length + disk * 3)
      return [mountPoint, totalGB, usedGB, usagePercent]
    })
    return { numbers, disks }
  })
}
