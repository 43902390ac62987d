import { setImmediate } from 'node:timers/promises'
import { Mutex } from '../../core/mutex.ts'
import type { Sliced } from '../../core/selector/resolve.ts'

/** Runs one slice between two polls of the sockets. Global: all servers of a process share its event loop. */
const eventLoop = new Mutex()

/** Runs work in slices, so that requests and heartbeats are answered in between. */
export async function runInSlices<T>(work: Sliced<T>): Promise<T> {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await eventLoop.run(() => setImmediate())
  }
}
