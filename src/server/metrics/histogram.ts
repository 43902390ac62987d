import { type Family, type LabelValues, type Sample, Series } from './family.ts'

/** How often values fell below each bound, since this server's start. */
export class Distribution {
  sum = 0
  count = 0
  readonly #bounds: readonly number[]
  readonly #below: Float64Array

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#below = new Float64Array(bounds.length)
  }

  observe(value: number): void {
    let at = 0
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? 0)) at++
    if (at < this.#bounds.length) this.#below[at] = (this.#below[at] ?? 0) + 1
    this.sum += value
    this.count++
  }

  samples(labels: Readonly<Record<string, string>>): Sample[] {
    let total = 0
    const buckets = this.#bounds.map((bound, at) => {
      total += this.#below[at] ?? 0
      return { suffix: '_bucket', labels: { ...labels, le: String(bound) }, value: total }
    })
    return [
      ...buckets,
      { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: this.count },
      { suffix: '_sum', labels, value: this.sum },
      { suffix: '_count', labels, value: this.count },
    ]
  }
}

export class Histogram<L extends string = never> implements Family {
  readonly name: string
  readonly help: string
  readonly type = 'histogram'
  readonly #series: Series<L, Distribution>

  /** `bounds` ascend; values beyond the last one count as +Inf. */
  constructor(name: string, help: string, bounds: readonly number[], labels: readonly L[]) {
    this.name = name
    this.help = help
    this.#series = new Series(labels, () => new Distribution(bounds))
  }

  of(labels: LabelValues<L>): Distribution {
    return this.#series.of(labels)
  }

  samples(): Sample[] {
    return [...this.#series.all()].flatMap(({ labels, tally }) => tally.samples(labels))
  }
}
