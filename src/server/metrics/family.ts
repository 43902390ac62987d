/** One line of the exposition. `suffix` is `_bucket`, `_sum` or `_count` for parts of a histogram. */
export interface Sample {
  suffix?: string
  labels: Readonly<Record<string, string>>
  value: number
}

/** All series of one name (Prometheus exposition format 0.0.4). */
export interface Family {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram'
  /** What holds at the moment of the scrape. */
  samples(): readonly Sample[] | Promise<readonly Sample[]>
}

export type LabelValues<L extends string> = Readonly<Record<L, string>>

/** The series of a family, made when they are first seen; callers keep what they hit often. */
export class Series<L extends string, T> {
  readonly #labels: readonly L[]
  readonly #make: () => T
  readonly #known = new Map<string, { labels: LabelValues<L>; tally: T }>()

  constructor(labels: readonly L[], make: () => T) {
    this.#labels = labels
    this.#make = make
  }

  of(labels: LabelValues<L>): T {
    const key = this.#labels.map((label) => labels[label]).join('\n')
    let found = this.#known.get(key)
    if (!found) {
      found = { labels, tally: this.#make() }
      this.#known.set(key, found)
    }
    return found.tally
  }

  all(): Iterable<{ labels: LabelValues<L>; tally: T }> {
    return this.#known.values()
  }
}
