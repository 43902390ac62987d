/** A map of at most `most` entries: a new entry evicts the one set longest ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number
  readonly #evicted: (key: K, value: V) => void

  /** `evicted` is called with each evicted entry, not with deleted ones. */
  constructor(most: number, evicted: (key: K, value: V) => void = () => undefined) {
    super()
    this.#most = most
    this.#evicted = evicted
  }

  /** An entry that is set again becomes the newest. */
  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#most) this.#evictOldest()
    return this
  }

  #evictOldest(): void {
    const [oldest] = this
    if (oldest === undefined) return
    this.delete(oldest[0])
    this.#evicted(...oldest)
  }
}
