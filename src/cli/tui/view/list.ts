/** A scrolling list with one chosen row. The choice follows its row when rows move. */
export class List<Id extends string | number> {
  ids: readonly Id[] = []
  chosen: Id | null = null
  #top = 0

  /** Sets the rows in order. If the chosen one is gone, chooses the row in its place. */
  set(ids: readonly Id[]): void {
    const former = this.chosen === null ? 0 : Math.max(0, this.ids.indexOf(this.chosen))
    this.ids = ids
    if (this.chosen === null || !ids.includes(this.chosen))
      this.chosen = ids[Math.min(former, ids.length - 1)] ?? null
  }

  choose(id: Id): void {
    if (this.ids.includes(id)) this.chosen = id
  }

  move(by: number): void {
    const at = this.chosen === null ? 0 : this.ids.indexOf(this.chosen)
    const wanted = Math.max(0, Math.min(this.ids.length - 1, at + by))
    this.chosen = this.ids[wanted] ?? null
  }

  /** The rows visible at this height, including the chosen one. */
  shown(height: number): readonly Id[] {
    if (height <= 0) return []
    const at = this.chosen === null ? 0 : this.ids.indexOf(this.chosen)
    if (at < this.#top) this.#top = at
    if (at >= this.#top + height) this.#top = at - height + 1
    this.#top = Math.max(0, Math.min(this.#top, this.ids.length - height))
    return this.ids.slice(this.#top, this.#top + height)
  }
}

const steps: Readonly<Record<string, (height: number) => number>> = {
  up: () => -1,
  k: () => -1,
  down: () => 1,
  j: () => 1,
  pageup: (height) => 1 - height,
  'C-b': (height) => 1 - height,
  pagedown: (height) => height - 1,
  'C-f': (height) => height - 1,
  ' ': (height) => height - 1,
  'C-u': (height) => -Math.floor(height / 2),
  'C-d': (height) => Math.floor(height / 2),
  home: () => Number.NEGATIVE_INFINITY,
  g: () => Number.NEGATIVE_INFINITY,
  end: () => Number.POSITIVE_INFINITY,
  G: () => Number.POSITIVE_INFINITY,
}

/** Rows that a key moves; undefined for other keys. */
export function stepOf(name: string, height: number): number | undefined {
  return steps[name]?.(Math.max(2, height))
}
