import type { Change } from '../../core/protocol/http/events.ts'
import { createMemberships, createPublisher, type EventsDependencies, merge } from './publisher.ts'
import { createListener, type EventListener, type ListenOptions, Ring } from './ring.ts'

/** Milliseconds within which several changes of a record become one event … */
const shortestPause = 50
/** … or longer if reading them is slow, so that it takes at most a tenth of the time … */
const pausePerWork = 9
/** … up to this limit. */
const longestPause = 2000
/** Milliseconds without listeners during which changes are still collected, for clients that resume (contract §9). */
const lingerTime = 5 * 60_000
const ringLimits = { frames: 20_000, bytes: 16 * 1024 * 1024, batchBytes: 64 * 1024 }

/**
 * Changes of hosts, tasks and clusters for dashboards (contract §3). Each change is read and formatted once, and all
 * listeners send the same bytes. Nothing is collected without listeners.
 */
export interface Events {
  /** A stream of events; it counts as a listener while its batches are consumed. */
  listen(options: ListenOptions): EventListener
  close(): void
}

export function createEvents(deps: EventsDependencies): Events {
  const { store, fleet, hints, clock, log } = deps
  const ring = new Ring(ringLimits)
  const memberships = createMemberships(store, fleet)
  const publish = createPublisher(deps, memberships, ring)
  const noted = {
    host: new Map<number, Change>(),
    cluster: new Map<number, Change>(),
    task: new Map<string, Change>(),
  }
  let listeners = 0
  let subscriptions: (() => void)[] = []
  let beginning: Promise<void> = Promise.resolve()
  let linger: NodeJS.Timeout | undefined
  let timer: NodeJS.Timeout | undefined
  let isPublishing = false
  let pause = shortestPause

  async function publishChanges(): Promise<void> {
    isPublishing = true
    const began = clock.monotonic()
    try {
      const changed = {
        host: new Map(noted.host),
        cluster: new Map(noted.cluster),
        task: new Map(noted.task),
      }
      for (const changes of Object.values(noted)) changes.clear()
      await publish(changed)
    } catch (error) {
      log.error({ err: error }, 'events: could not read changes; listeners must read everything again')
      ring.forget()
    }
    pause = Math.min(longestPause, Math.max(shortestPause, (clock.monotonic() - began) * pausePerWork))
    endPublishing()
  }

  function endPublishing(): void {
    isPublishing = false
    if (Object.values(noted).some((changes) => changes.size > 0)) schedule()
  }

  function schedule(): void {
    if (timer !== undefined || isPublishing) return
    timer = setTimeout(() => {
      timer = undefined
      void publishChanges()
    }, pause).unref()
  }

  function note<Id>(changes: Map<Id, Change>, id: Id, change: Change): void {
    changes.set(id, merge(changes.get(id), change))
    schedule()
  }

  /** Starts collecting; resolves when no further change can be missed. */
  function gather(): Promise<void> {
    clearTimeout(linger)
    if (subscriptions.length > 0) return beginning
    subscriptions = [
      hints.subscribe('host', null, ({ id, change }) => note(noted.host, id, change)),
      hints.subscribe('cluster', null, ({ id, change }) => note(noted.cluster, id, change)),
      hints.subscribe('task', null, ({ id, change }) => note(noted.task, id, change)),
    ]
    beginning = readMemberships()
    return beginning
  }

  /** Reads current memberships, the baseline for later changes. */
  async function readMemberships(): Promise<void> {
    isPublishing = true
    try {
      await memberships.changed()
    } catch (error) {
      log.error({ err: error }, 'events: could not read cluster members')
    }
    endPublishing()
  }

  function rest(): void {
    for (const end of subscriptions) end()
    subscriptions = []
    clearTimeout(linger)
    clearTimeout(timer)
    timer = undefined
    for (const changes of Object.values(noted)) changes.clear()
    memberships.forget()
    // Changes from now on are not collected, so listeners that come back later must reset.
    ring.forget()
  }

  return {
    listen(options) {
      const listener = createListener(ring, options)
      return {
        ...listener,
        async *batches(signal) {
          if (signal.aborted) return
          listeners++
          try {
            await gather()
            yield* listener.batches(signal)
          } finally {
            if (--listeners === 0) linger = setTimeout(rest, lingerTime).unref()
          }
        },
      }
    },
    close: rest,
  }
}
