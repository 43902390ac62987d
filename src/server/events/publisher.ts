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
import type { Ring } from './ring.ts'

/** Records per batch; listeners run between batches. */
const recordsAtOnce = 500

export interface EventsDependencies {
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
export function createPublisher(
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
export function merge(earlier: Change | undefined, next: Change): Change {
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

export function createMemberships(store: Store, fleet: Fleet): Memberships {
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
