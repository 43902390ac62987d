import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { ExecutionContext } from 'ava'

type Refusable = 'watch' | 'writeSync' | 'fsyncSync' | 'openSync'

/** Puts `fault` in the place of a call of `node:fs`, which it is given first. The answer ends it. */
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
 * Makes a call of `node:fs` throw `code` where `when` says so, for all modules of this test file: for faults that the
 * machine itself can't be made to show, as inotify used up. Gives what ends it.
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
