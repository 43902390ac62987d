import { RsmError } from '../../../../core/errors.ts'
import { Mutex } from '../../../../core/mutex.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Id, Noun } from '../../records/records.ts'
import type { Database } from '../connection/database.ts'
import { changesSince, placeNow, sweepChanges } from './look.ts'
import type { Sent } from './open.ts'
import { isNumbered } from './tables.ts'

/** Milliseconds between two looks at what others have changed. */
const lookEvery = 1000
/** Looks after which changes may be swept; one a minute. */
const looksToSweep = 60

type Changed = (id: Id | null) => void

/** What this and other servers have changed, told to who watches. */
export interface Feed {
  watch(noun: Noun, changed: Changed): void
  /** Other servers have changed something: it is read now. */
  look(): void
  /** Resolves when all has been told that was committed before the call. Errors: `unavailable`. */
  refresh(): Promise<void>
  /** A transaction of this server is about to commit; what the feed would tell of it `told` tells. */
  expect(sent: Sent): void
  /** It has not committed, as far as this server knows. */
  forget(sent: Sent): void
  /** It has committed. */
  told(sent: Sent): void
  close(): Promise<void>
}

export async function openFeed(database: Database, log: Log): Promise<Feed> {
  const watchers = new Map<Noun, Changed[]>()
  /** Transactions of this server that tell for themselves. */
  const own = new Set<string>()
  let place = await placeNow(database)
  let looks = 0
  let timer: NodeJS.Timeout | null = null
  let isClosed = false

  function tell(noun: Noun, id: Id | null): void {
    for (const changed of watchers.get(noun) ?? []) changed(id)
  }

  async function read(): Promise<void> {
    const found = await changesSince(database, place)
    place = found.place
    if (found.changes === null) {
      log.warn({ timeline: place.timeline }, 'changes of other servers were missed: reading everything again')
      for (const noun of watchers.keys()) tell(noun, null)
      own.clear()
      return
    }
    for (const { noun, id, xid } of found.changes)
      if (!own.has(xid)) tell(noun, isNumbered(noun) ? Number(id) : id)
    for (const { xid } of found.changes) own.delete(xid)
  }
  const reads = new Mutex()
  let next: Promise<void> | null = null
  /** Calls during a read share the next one, because the present one may miss their changes. */
  function refresh(): Promise<void> {
    next ??= reads.run(() => {
      next = null
      return read()
    })
    return next
  }

  async function lookAndSweep(): Promise<void> {
    await refresh()
    if (++looks % looksToSweep === 0) await sweepChanges(database)
  }

  const noteFault = (error: unknown) => log.debug({ err: error }, 'could not look for changes')

  function schedule(): void {
    if (!isClosed) timer = setTimeout(() => void lookAndSweep().catch(noteFault).then(schedule), lookEvery)
  }
  schedule()

  return {
    watch: (noun, changed) => void watchers.set(noun, [...(watchers.get(noun) ?? []), changed]),
    look: () => void refresh().catch(noteFault),
    refresh: () =>
      isClosed ? Promise.reject(new RsmError('unavailable', 'the store is closed')) : refresh(),
    expect({ xid }) {
      if (xid !== null) own.add(xid)
    },
    forget({ xid }) {
      if (xid !== null) own.delete(xid)
    },
    told({ changed }) {
      for (const { noun, id } of changed) tell(noun, id)
    },
    async close() {
      isClosed = true
      if (timer) clearTimeout(timer)
      await reads.idle()
    },
  }
}
