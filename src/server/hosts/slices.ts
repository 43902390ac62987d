import { setImmediate } from 'node:timers/promises'
import { Mutex } from '../../core/mutex.ts'
import type { Sliced } from '../../core/selector/resolve.ts'

/**
 * One slice of one piece of work runs between two looks at the sockets. This belongs to the process and not to a server: servers of
 * one process share its event loop.
 */
const eventLoop = new Mutex()

/** Does sliced work so that requests and heartbeats are answered meanwhile, however much of it there is at once. */
export async function runInSlices<T>(work: Sliced<T>): Promise<T> {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
    await eventLoop.run(() => setImmediate())
  }
}
