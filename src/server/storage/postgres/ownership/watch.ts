import { Mutex } from '../../../../core/mutex.ts'
import { repeat } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Session } from '../connection/session.ts'
import { isLocked, settleTime } from './lives.ts'

/** Milliseconds between polls. A lock counts as released if two polls miss it, because a broken connection is back sooner. */
const pollInterval = 300

interface Seen {
  name: string
  epoch: number
  is_leased: boolean
  is_locked: boolean
}

const pollStatement = {
  name: 'servers.look',
  text: `select s.name, s.epoch, s.lease_until > rsm.now() as is_leased, ${isLocked('s')} as is_locked from rsm.servers s`,
}

/** Checks the lock again, because it may be back since the poll. */
const endLeases = {
  name: 'servers.end-leases',
  text: `update rsm.servers s set lease_until = rsm.now()
    where s.epoch = any($1) and s.lease_until > rsm.now() and not ${isLocked('s')} returning s.name`,
}

/** Polls which servers live, and ends leases without locks (docs/inside/living-servers.md). */
export interface Watch {
  /** Epochs of live servers as of the last poll. */
  living(): ReadonlySet<number>
  /** Calls `listener` when live servers change. Returns a function to unsubscribe. */
  changed(listener: () => void): () => void
  /** Polls now. */
  poll(): Promise<void>
  close(): Promise<void>
}

export function createWatch(session: Session, hints: Hints, log: Log): Watch {
  let living = new Map<number, string>()
  let epochs = new Set<number>()
  const listeners = new Set<() => void>()
  let fallen = new Set<number>()
  const mutex = new Mutex()

  async function pollOnce(): Promise<void> {
    const all = await session.ask<Seen>(pollStatement)
    const missing = all.filter(({ is_leased, is_locked }) => is_leased && !is_locked)
    const mayJudge = session.age() >= settleTime
    const dead = missing.filter(({ epoch }) => mayJudge && fallen.has(epoch)).map(({ epoch }) => epoch)
    fallen = new Set(missing.map(({ epoch }) => epoch))
    if (dead.length > 0)
      for (const { name } of await session.ask<{ name: string }>(endLeases, [dead]))
        log.warn({ name }, 'a server has died: others take over what it owned')
    const leased = all.filter(({ epoch, is_leased }) => is_leased && !dead.includes(epoch))
    note(new Map(leased.map(({ epoch, name }) => [epoch, name])))
  }

  function note(now: Map<number, string>): void {
    const previous = living
    living = now
    epochs = new Set(now.keys())
    const gone = [...previous].filter(([epoch]) => !now.has(epoch))
    const come = [...now].filter(([epoch]) => !previous.has(epoch))
    if (gone.length + come.length === 0) return
    for (const listener of listeners) listener()
    for (const name of new Set([...gone, ...come].map(([, of]) => of))) hints.publish('server', { id: name })
  }

  /** Runs after a poll in progress, which may have seen an older state. */
  function pollNow(): Promise<void> {
    return mutex.run(pollOnce)
  }

  // The session reports its own faults.
  const polling = repeat(pollInterval, pollNow, (error) =>
    log.debug({ err: error }, 'could not poll which servers live'),
  )

  return {
    living: () => epochs,
    changed(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    poll: pollNow,
    async close() {
      await polling.stop()
      await mutex.idle()
    },
  }
}
