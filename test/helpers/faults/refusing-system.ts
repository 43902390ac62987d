import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { ExecutionContext } from 'ava'

type Refusable = 'watch' | 'writeSync' | 'fsyncSync' | 'openSync'

/** Replaces a function of `node:fs` by `fault`, which gets the original first. Returns a function that restores it. */
export function replace(
  t: ExecutionContext,
  name: Refusable,
  fault: (real: (...given: unknown[]) => unknown, ...given: unknown[]) => unknown,
): () => void {
  const real = fs[name] as (...given: unknown[]) => unknown
  const put = (call: unknown) => {
    Object.assign(fs, { [name]: call })
    syncBuiltinESMExports()
  }
  put((...given: unknown[]) => fault(real, ...given))
  const end = () => put(real)
  t.teardown(end)
  return end
}

/**
 * Makes a function of `node:fs` throw `code` when `when` is true, for all modules of this test file: for faults that cannot be
 * provoked on the machine itself, such as exhausted inotify watches. Returns a function that ends it.
 */
export function refuse(
  t: ExecutionContext,
  name: Refusable,
  code: string,
  when: (...given: unknown[]) => boolean = () => true,
): () => void {
  return replace(t, name, (real, ...given) => {
    if (when(...given)) throw Object.assign(new Error(`${code}: refused, ${name}`), { code })
    return real(...given)
  })
}
