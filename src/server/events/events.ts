import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cluster } from '../../core/protocol/http/clusters.ts'
import type { Change, EventType } from '../../core/protocol/http/events.ts'
import { formatEvent } from '../../core/protocol/wire-text.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Fleet } from '../hosts/fleet.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Engine } from '../tasks/engine.ts'
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

/** Records per batch; listeners run between batches. */
const recordsAtOnce = 500

interface EventsDependencies {
  store: Store
  fleet: Fleet
  engine: Pick<Engine, 'summary'>
  hints: Hints
  clock: Clock
  log: Log
}

interface Changed {
  host: ReadonlyMap<number, Change>
  cluster: ReadonlyMap<number, Change>
  task: ReadonlyMap<string, Change>
}

/** Returns a function that reads changed records once and appends them to the ring as events. */
function createPublisher(
  { store, fleet, engine, clock }: EventsDependencies,
  memberships: Memberships,
  ring: Ring,
): (changed: Changed) => Promise<void> {
  function publish(type: EventType, change: Change, dto: object): void {
    const data = { change, at: isoTime(clock.now()), [type]: dto }
    ring.append(type, (id) => formatEvent(type, data, id))
  }

  /** Publishes changes. Skips missing records without a removal in `changes`: that hint is still to come. */
  async function publishRecords<R extends { id: number }, S extends { id: number }>(
    type: 'host' | 'cluster',
    changes: ReadonlyMap<number, Change>,
    get: (ids: number[]) => Promise<(R | undefined)[]>,
    toApi: (records: R[]) => Promise<S[]>,
  ): Promise<void> {
    for (const chunk of chunks([...changes])) {
      const kept = chunk.filter(([, change]) => change !== 'removed')
      const records = await get(kept.map(([id]) => id))
      const found = records.filter((record) => record !== undefined)
      const dtos = found.length === 0 ? [] : await toApi(found)
      for (const one of dtos) publish(type, changes.get(one.id) ?? 'updated', one)
      for (const [id, change] of chunk) if (change === 'removed') publish(type, change, { id })
      ring.wake()
      await nextTurn()
    }
  }

  async function publishTasks(changes: ReadonlyMap<string, Change>): Promise<void> {
    for (const chunk of chunks([...changes])) {
      const tasks = await store.getMany(
        'tasks',
        chunk.map(([taskId]) => taskId),
      )
      for (const task of tasks)
        if (task) publish('task', changes.get(task.id) ?? 'updated', await engine.summary(task))
      ring.wake()
      await nextTurn()
    }
  }

  return async ({ host, cluster, task }) => {
    const clusters = new Map(cluster)
    if (host.size > 0 || cluster.size > 0)
      for (const { id } of await memberships.changed()) clusters.set(id, merge(clusters.get(id), 'updated'))
    await publishRecords(
      'host',
      host,
      (ids) => store.getMany('hosts', ids),
      (found) => fleet.hostsToApi(found),
    )
    await publishRecords(
      'cluster',
      clusters,
      (ids) => store.getMany('clusters', ids),
      (found) => fleet.clustersToApi(found),
    )
    await publishTasks(task)
  }
}

/** Merges two changes of one record: a removal is final, because ids are never reused; a creation remains one. */
function merge(earlier: Change | undefined, next: Change): Change {
  return next === 'removed' || earlier === undefined ? next : earlier
}

function* chunks<T>(all: readonly T[]): Generator<T[]> {
  for (let at = 0; at < all.length; at += recordsAtOnce) yield all.slice(at, at + recordsAtOnce)
}

/** Detects hosts that enter or leave a dynamic cluster, because the cluster's record does not change then. */
interface Memberships {
  /** Dynamic clusters whose members changed since the last call; none at the first call. */
  changed(): Promise<Cluster[]>
  forget(): void
}

function createMemberships(store: Store, fleet: Fleet): Memberships {
  let known: Map<number, string> | null = null
  return {
    async changed() {
      const dynamic = (await store.query('clusters')).items.filter(({ selector }) => selector !== null)
      const dtos = dynamic.length === 0 ? [] : await fleet.clustersToApi(dynamic)
      const before = known
      known = new Map(dtos.map(({ id, hostIds }) => [id, hostIds.join()]))
      // A new dynamic cluster already has an event of its own, from its creation or change.
      return dtos.filter(({ id, hostIds }) => {
        const previous = before?.get(id)
        return previous !== undefined && previous !== hostIds.join()
      })
    },
    forget() {
      known = null
    },
  }
}
