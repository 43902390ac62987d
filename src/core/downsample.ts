import type { Metrics } from './protocol/http/hosts.ts'

type Disk = Metrics['disk'][number]
type Averaged = Record<string, number>

/** Disks of one bucket, as in one report: mounts that come and go must not make an answer grow without end. */
const mostDisks = 256

/** Collects samples of a time range and answers them thinned out; its memory grows with `points`, not with samples. */
export interface Downsample {
  /** Samples may come in any order; one outside the range is left out. */
  add(sample: Metrics): void
  /**
   * At most `points` samples in ascending order: each the average of its bucket, rounded to hundredths, its timestamp the
   * bucket's start. Disks are matched by mount point. A bucket without samples is left out (contract §3).
   */
  samples(): Metrics[]
}

/** `from` and `to` are milliseconds since the epoch, both within the range; `points` is at least 1. */
export function createDownsample(range: { from: number; to: number; points: number }): Downsample {
  const { from, to, points } = range
  // No bucket is shorter than a timestamp can tell.
  const width = Math.max(1, (to - from) / points)
  const buckets = new Map<number, Bucket>()
  return {
    add(sample) {
      const at = Date.parse(sample.timestamp)
      if (!(at >= from && at <= to)) return
      const index = Math.min(points - 1, Math.floor((at - from) / width))
      let bucket = buckets.get(index)
      if (bucket === undefined) {
        bucket = newBucket()
        buckets.set(index, bucket)
      }
      addTo(bucket, sample)
    },
    samples() {
      return [...buckets]
        .sort(([one], [other]) => one - other)
        .map(([index, bucket]) => averageOf(bucket, Math.floor(from + index * width)))
    },
  }
}

interface Bucket {
  readonly cpu: Mean
  readonly memory: Mean
  readonly network: Mean
  readonly disks: Map<string, Mean>
}

/** Running averages, field by field: a sum of what hosts report could overflow. */
interface Mean {
  count: number
  values: Averaged
}

const newMean = (): Mean => ({ count: 0, values: {} })

function newBucket(): Bucket {
  return { cpu: newMean(), memory: newMean(), network: newMean(), disks: new Map() }
}

function include(mean: Mean, values: Averaged): void {
  mean.count += 1
  const share = 1 / mean.count
  for (const [name, value] of Object.entries(values))
    mean.values[name] = (mean.values[name] ?? 0) * (1 - share) + value * share
}

function addTo(bucket: Bucket, { cpu, memory, network, disk }: Metrics): void {
  include(bucket.cpu, cpu)
  include(bucket.memory, memory)
  include(bucket.network, network)
  for (const { mountPoint, ...sizes } of disk) {
    let mean = bucket.disks.get(mountPoint)
    if (mean === undefined) {
      if (bucket.disks.size >= mostDisks) continue
      mean = newMean()
      bucket.disks.set(mountPoint, mean)
    }
    include(mean, sizes)
  }
}

function averageOf(bucket: Bucket, at: number): Metrics {
  return {
    timestamp: new Date(at).toISOString(),
    cpu: rounded<Metrics['cpu']>(bucket.cpu),
    memory: rounded<Metrics['memory']>(bucket.memory),
    disk: [...bucket.disks].map(([mountPoint, mean]) => ({
      mountPoint,
      ...rounded<Omit<Disk, 'mountPoint'>>(mean),
    })),
    network: rounded<Metrics['network']>(bucket.network),
  }
}

/** `Shape` is that of the values that went in: averages keep their names. */
function rounded<Shape>({ values }: Mean): Shape {
  const whole = Object.entries(values).map(([name, value]) => [name, hundredths(value)])
  return Object.fromEntries(whole) as Shape
}

/** Numbers whose hundredths a double can't hold stay as they are. */
function hundredths(value: number): number {
  return Math.abs(value) < 1e12 ? Math.round(value * 100) / 100 : value
}
