import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { ExecutionContext } from 'ava'

type Refusable = 'watch' | 'writeSync' | 'fsyncSync' | 'openSync'

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
  const real = fs[name] as (...given: unknown[]) => unknown
  const put = (call: unknown) => {
    Object.assign(fs, { [name]: call })
    syncBuiltinESMExports()
  }
  put((...given: unknown[]) => {
    if (when(...given)) throw Object.assign(new Error(`${code}: refused, ${name}`), { code })
    return real(...given)
  })
  const end = () => put(real)
  t.teardown(end)
  return end
}
