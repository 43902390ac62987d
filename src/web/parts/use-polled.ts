import { type Inputs, useEffect, useRef, useState } from 'preact/hooks'
import { mendable } from '../../core/errors.ts'
import { pause } from '../../net/backoff.ts'
import { errorText } from '../api.ts'

/** Milliseconds between two polls of data without events. */
const interval = 5_000

interface Read<T> {
  /** Undefined before the first answer. */
  value: T | undefined
  fault: string
}

export interface Polled<T> extends Read<T> {
  again: () => void
}

/** Polls `read`, and restarts when `inputs` change. Keeps the last value while disconnected. */
export function usePolled<T>(read: () => Promise<T>, inputs: Inputs): Polled<T> {
  const [known, setKnown] = useState<Read<T>>({ value: undefined, fault: '' })
  const wake = useRef(() => {})
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    let rest = controller
    async function poll(): Promise<void> {
      try {
        const value = await read()
        if (!signal.aborted) setKnown({ value, fault: '' })
      } catch (error) {
        const fault = errorText(error)
        const isKept = mendable(error)
        if (!signal.aborted) setKnown(({ value }) => ({ value: isKept ? value : undefined, fault }))
      }
    }
    async function follow(): Promise<void> {
      while (!signal.aborted) {
        // Created before the read, because data requested during it may be newer than its answer.
        rest = new AbortController()
        const woken = rest.signal
        await poll()
        if (!signal.aborted) await pause(interval, woken)
      }
    }
    wake.current = () => rest.abort()
    void follow()
    return () => {
      controller.abort()
      rest.abort()
    }
  }, inputs)
  return { ...known, again: () => wake.current() }
}
