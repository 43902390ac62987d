import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Change, EventType } from '../../core/protocol/http/events.ts'
import { type Clock, isoTime } from '../clock.ts'
import type { Engine } from '../engine/engine.ts'
import { formatEvent } from '../http/sse.ts'
import type { Log } from '../log.ts'
import type { Hints } from '../seams/hints.ts'
import type { Store } from '../seams/store.ts'
import type { Fleet } from '../services/hosts/fleet.ts'
import { createListener, type EventListener, type ListenOptions } from './listener.ts'
import { createMemberships } from './memberships.ts'
import { Ring } from './ring.ts'

/** What changes several times within this is told once, in milliseconds … */
const shortestPause = 50
/** … and later where reading what changed takes long: it takes no more than a tenth of the time … */
const pausePerWork = 9
/** … but nobody waits longer than this for it to begin. */
const longestPause = 2000
/** So long after the last listener left, changes are still gathered: a client takes up a lost stream within that (contract §9). */
const lingerTime = 5 * 60_000
/** Records read and told at once; between them the listeners get their turn. */
const recordsAtOnce = 500
const ringLimits = { frames: 20_000, bytes: 16 * 1024 * 1024, batchBytes: 64 * 1024 }

export interface EventsDependencies {
  store: Store
  fleet: Fleet
  engine: Pick<Engine, 'summary'>
  hints: Hints
  clock: Clock
  log: Log
}

/**
 * Changes of hosts, tasks and clusters for dashboards (contract §3). What changed is read once, made into the bytes of an
 * event once, and every listener sends those. While nobody listens nothing is gathered.
 */
export interface Events {
  /** A stream of events; it counts as a listener while its batches are taken. */
  listen(options: ListenOptions): EventListener
  close(): void
}

/** Ids are never reused, so a removal is the last that is heard; what was just created is still to be told as that. */
function merge(former: Change | undefined, next: Change): Change {
  return next === 'removed' || former === undefined ? next : former
}

function* chunks<T>(all: readonly T[]): Generator<T[]> {
  for (let at = 0; at < all.length; at += recordsAtOnce) yield all.slice(at, at + recordsAtOnce)
}

export function createEvents(deps: EventsDependencies): Events {
  const { store, fleet, engine, hints, clock, log } = deps
  const ring = new Ring(ringLimits)
  const memberships = createMemberships(store, fleet)
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
  let telling = false
  let pause = shortestPause

  function tell(type: EventType, change: Change, shown: object): void {
    const data = { change, at: isoTime(clock.now()), [type]: shown }
    ring.append(type, (id) => formatEvent(type, data, id))
  }

  /**
   * Tells what became of the records of one noun. One that is gone without word of its removal is left out: that word is
   * still to come.
   */
  async function tellRecords<R extends { id: number }, S extends { id: number }>(
    type: 'host' | 'cluster',
    changes: ReadonlyMap<number, Change>,
    get: (ids: number[]) => Promise<(R | undefined)[]>,
    show: (records: R[]) => Promise<S[]>,
  ): Promise<void> {
    for (const chunk of chunks([...changes])) {
      const kept = chunk.filter(([, change]) => change !== 'removed')
      const records = await get(kept.map(([id]) => id))
      const found = records.filter((record) => record !== undefined)
      const shown = found.length === 0 ? [] : await show(found)
      for (const one of shown) tell(type, changes.get(one.id) ?? 'updated', one)
      for (const [id, change] of chunk) if (change === 'removed') tell(type, change, { id })
      ring.wake()
      await nextTurn()
    }
  }

  async function tellTasks(changes: ReadonlyMap<string, Change>): Promise<void> {
    for (const chunk of chunks([...changes])) {
      const tasks = await store.getMany(
        'tasks',
        chunk.map(([taskId]) => taskId),
      )
      for (const task of tasks)
        if (task) tell('task', changes.get(task.id) ?? 'updated', await engine.summary(task))
      ring.wake()
      await nextTurn()
    }
  }

  async function tellAll(): Promise<void> {
    const [hosts, clusters, tasks] = [new Map(noted.host), new Map(noted.cluster), new Map(noted.task)]
    for (const changes of Object.values(noted)) changes.clear()
    if (hosts.size > 0 || clusters.size > 0)
      for (const { id } of await memberships.changed()) clusters.set(id, merge(clusters.get(id), 'updated'))
    await tellRecords(
      'host',
      hosts,
      (ids) => store.getMany('hosts', ids),
      (found) => fleet.showHosts(found),
    )
    await tellRecords(
      'cluster',
      clusters,
      (ids) => store.getMany('clusters', ids),
      (found) => fleet.showClusters(found),
    )
    await tellTasks(tasks)
  }

  async function tellWhatChanged(): Promise<void> {
    telling = true
    const began = clock.monotonic()
    try {
      await tellAll()
    } catch (error) {
      log.error({ err: error }, 'events: what changed could not be read; listeners are told to read anew')
      ring.forget()
    }
    pause = Math.min(longestPause, Math.max(shortestPause, (clock.monotonic() - began) * pausePerWork))
    doneTelling()
  }

  function doneTelling(): void {
    telling = false
    if (Object.values(noted).some((changes) => changes.size > 0)) schedule()
  }

  function schedule(): void {
    if (timer !== undefined || telling) return
    timer = setTimeout(() => {
      timer = undefined
      void tellWhatChanged()
    }, pause).unref()
  }

  function note<Id>(changes: Map<Id, Change>, id: Id, change: Change): void {
    changes.set(id, merge(changes.get(id), change))
    schedule()
  }

  /** Resolves when nothing that changes from now on is missed. */
  function gather(): Promise<void> {
    clearTimeout(linger)
    if (subscriptions.length > 0) return beginning
    subscriptions = [
      hints.subscribe('host', null, ({ id, change }) => note(noted.host, id, change)),
      hints.subscribe('cluster', null, ({ id, change }) => note(noted.cluster, id, change)),
      hints.subscribe('task', null, ({ id, change }) => note(noted.task, id, change)),
    ]
    beginning = lookAround()
    return beginning
  }

  /** Who is a member of what now: what follows is told as a difference. */
  async function lookAround(): Promise<void> {
    telling = true
    try {
      await memberships.changed()
    } catch (error) {
      log.error({ err: error }, 'events: members of clusters could not be read')
    }
    doneTelling()
  }

  function rest(): void {
    for (const end of subscriptions) end()
    subscriptions = []
    clearTimeout(linger)
    clearTimeout(timer)
    timer = undefined
    for (const changes of Object.values(noted)) changes.clear()
    memberships.forget()
    // What happens from now on is not known to anyone who comes back later.
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
