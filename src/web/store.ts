import { useEffect, useState } from 'preact/hooks'

/** A value that tells who looks at it when it changes. */
export interface Store<T> {
  get(): T
  set(value: T): void
  update(change: (value: T) => T): void
  /** Returns what ends it. */
  subscribe(listener: () => void): () => void
}

export function createStore<T>(value: T): Store<T> {
  const listeners = new Set<() => void>()
  const store: Store<T> = {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of listeners) listener()
    },
    update: (change) => store.set(change(value)),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return store
}

/** The store's value in a component, which is drawn again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useState({})
  useEffect(() => {
    let drawn = store.get()
    const check = () => {
      if (Object.is(drawn, store.get())) return
      drawn = store.get()
      draw({})
    }
    // It may have changed between the first drawing and this.
    draw({})
    return store.subscribe(check)
  }, [store])
  return store.get()
}

/** A value that the browser keeps, or undefined; storage may be full, forbidden, or hold what someone else wrote. */
export function readStored(storage: Storage, key: string): unknown {
  try {
    const text = storage.getItem(key)
    return text === null ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}

/** Keeps a value, and forgets it where it is undefined. Without storage the page works, and forgets at a reload. */
export function writeStored(storage: Storage, key: string, value: unknown): void {
  try {
    if (value === undefined) storage.removeItem(key)
    else storage.setItem(key, JSON.stringify(value))
  } catch {
    // Nothing depends on it.
  }
}
