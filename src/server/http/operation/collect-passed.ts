import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes of bodies after which the memory of those that have passed is freed; V8 would let four times as many wait. */
const passing = 16 * 1024 * 1024

// Both belong to the process and not to a server: what is collected is the heap of the process.
let collectYoung: ((options: { type: 'minor' }) => void) | undefined
let passed = 0

/** Counts bytes that came and went. Node gives each piece of a body a buffer of its own, which waits for a collection. */
export function countPassed(bytes: number): void {
  passed += bytes
  if (passed < passing) return
  passed = 0
  if (collectYoung === undefined) {
    setFlagsFromString('--expose-gc')
    collectYoung = runInNewContext('gc') as typeof collectYoung
    // V8 takes compiled code only with the flags that it was made with.
    setFlagsFromString('--no-expose-gc')
  }
  collectYoung?.({ type: 'minor' })
}
