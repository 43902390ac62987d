import { useEffect, useState } from 'preact/hooks'

/** An observable value. */
export interface Store<T> {
  get(): T
  set(value: T): void
  update(change: (value: T) => T): void
  /** Returns a function that unsubscribes. */
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

/** The value of a store; changes re-render the component. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useState({})
  useEffect(() => {
    let drawn = store.get()
    const check = () => {
      if (Object.is(drawn, store.get())) return
      drawn = store.get()
      draw({})
    }
    // The value may have changed between the first render and this effect.
    draw({})
    return store.subscribe(check)
  }, [store])
  return store.get()
}

/** A stored value, or undefined; storage may be full, forbidden, or hold data from elsewhere. */
export function readStored(storage: Storage, key: string): unknown {
  try {
    const text = storage.getItem(key)
    return text === null ? undefined : (JSON.parse(text) as unknown)
  } catch {
    return undefined
  }
}

/** Stores a value, or removes it if undefined. Without storage the page still works until a reload. */
export function writeStored(storage: Storage, key: string, value: unknown): void {
  try {
    if (value === undefined) storage.removeItem(key)
    else storage.setItem(key, JSON.stringify(value))
  } catch {
    // Best effort.
  }
}
