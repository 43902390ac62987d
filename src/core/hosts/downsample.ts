import type { Metrics } from './host.ts'

type DiskSizes = Omit<Metrics['disk'][number], 'mountPoint' | 'inodesPercent'>
type Averaged = Record<string, number>

/** Most disks of one bucket, as in one report: mounts that come and go must not grow an answer without bound. */
const mostDisks = 256

/** Downsamples a time range; memory grows with `points`, not with samples. */
export interface Downsample {
  /** Accepts samples in any order; ignores those outside the range. */
  add(sample: Metrics): void
  /**
   * At most `points` samples in ascending order: each the average of its bucket, rounded to hundredths, stamped with
   * the bucket's start. Disks are matched by mount point. Buckets without samples are left out (contract §3).
   */
  samples(): Metrics[]
}

/** `from` and `to` are inclusive, in milliseconds since the epoch; `points` is at least 1. */
export function createDownsample(range: { from: number; to: number; points: number }): Downsample {
  const { from, to, points } = range
  // Timestamps have a resolution of 1 ms.
  const width = Math.max(1, (to - from) / points)
  const buckets = new Map<number, Bucket>()
  return {
    add(sample) {
      const at = Date.parse(sample.timestamp)
      if (!(at >= from && at <= to)) return
      const index = Math.min(points - 1, Math.floor((at - from) / width))
      const bucket = buckets.get(index)
      if (bucket === undefined) buckets.set(index, newBucket(sample))
      else addTo(bucket, sample)
    },
    samples() {
      return [...buckets]
        .sort(([one], [other]) => one - other)
        .map(([index, bucket]) => averageOf(bucket, Math.floor(from + index * width)))
    },
  }
}

/** Running averages per field, because sums of what hosts report could overflow. */
interface Mean<Values extends Averaged> {
  count: number
  readonly values: Values
}

interface Bucket {
  readonly cpu: Mean<Metrics['cpu']>
  readonly memory: Mean<Metrics['memory']>
  readonly network: Mean<Metrics['network']>
  readonly disks: Map<string, Mean<DiskSizes>>
}

function meanOf<Values extends Averaged>(values: Values): Mean<Values> {
  return { count: 1, values: { ...values } }
}

function newBucket({ cpu, memory, network, disk }: Metrics): Bucket {
  const bucket = {
    cpu: meanOf(cpu),
    memory: meanOf(memory),
    network: meanOf(network),
    disks: new Map<string, Mean<DiskSizes>>(),
  }
  addDisks(bucket.disks, disk)
  return bucket
}

function addTo(bucket: Bucket, { cpu, memory, network, disk }: Metrics): void {
  include(bucket.cpu, cpu)
  include(bucket.memory, memory)
  include(bucket.network, network)
  addDisks(bucket.disks, disk)
}

function addDisks(disks: Bucket['disks'], added: Metrics['disk']): void {
  for (const { mountPoint, totalGB, usedGB, usagePercent } of added) {
    const sizes = { totalGB, usedGB, usagePercent }
    const mean = disks.get(mountPoint)
    if (mean !== undefined) include(mean, sizes)
    else if (disks.size < mostDisks) disks.set(mountPoint, meanOf(sizes))
  }
}

function include<Values extends Averaged>(mean: Mean<Values>, values: Values): void {
  mean.count += 1
  const share = 1 / mean.count
  const averages: Averaged = mean.values
  for (const [name, value] of Object.entries(values))
    averages[name] = (averages[name] ?? 0) * (1 - share) + value * share
}

function averageOf(bucket: Bucket, at: number): Metrics {
  return {
    timestamp: new Date(at).toISOString(),
    cpu: rounded(bucket.cpu),
    memory: rounded(bucket.memory),
    disk: [...bucket.disks].map(([mountPoint, mean]) => ({ mountPoint, ...rounded(mean) })),
    network: rounded(bucket.network),
  }
}

function rounded<Values extends Averaged>({ values }: Mean<Values>): Values {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, hundredths(value)]),
  ) as Values
}

/** Leaves numbers alone whose hundredths a double cannot represent. */
function hundredths(value: number): number {
  return Math.abs(value) < 1e12 ? Math.round(value * 100) / 100 : value
}
