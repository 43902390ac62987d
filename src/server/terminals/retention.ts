import type { Age } from '../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Recordings } from '../storage/ports/terminals.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'

const day = 24 * 3600_000
/** Removals per transaction, so that a sweep does not block other writes for long. */
const atOnce = 200

interface Kept {
  store: Store
  recordings: Recordings
  agreed: { age(): Age }
  clock: Clock
  log: Log
  /** 0 = forever. */
  days: number
}

export interface TerminalRetention {
  /** 0 = forever. */
  readonly days: number
  /** Predicts what a sweep would remove now; `bytes` are those of recordings. */
  plan(): Promise<{ sessions: number; bytes: number }>
  /** Removes expired terminals; returns their number. */
  sweep(): Promise<number>
}

export function createTerminalRetention({
  store,
  recordings,
  agreed,
  clock,
  log,
  days,
}: Kept): TerminalRetention {
  /** Recordings without a record: a process died between the two writes, or it is another store. */
  async function moveOrphansAside(age: Age): Promise<void> {
    // A new recording may belong to a terminal whose record is not written yet.
    const old = (await recordings.list()).filter(({ changedAt }) => age(changedAt) > day).map(({ id }) => id)
    const terminals = await store.getMany('terminals', old)
    const orphans = old.filter((_, index) => !terminals[index])
    if (orphans.length > 0) {
      const folder = await recordings.moveAside(orphans, clock.now())
      log.warn(
        { folder, sessions: orphans },
        'recordings of sessions that are not in the store were moved aside',
      )
    }
    await recordings.orphans.sweep(days, age)
  }

  async function past(age: Age): Promise<Readonly<TerminalRecord>[]> {
    if (days === 0) return []
    const ended = { before: { endedAt: isoTime(clock.now() - days * day) } }
    return (await store.query('terminals', { where: ended })).items.filter(
      ({ endedAt }) => endedAt !== null && age(Date.parse(endedAt)) > days * day,
    )
  }

  return {
    days,
    async plan() {
      const terminals = await past(agreed.age())
      const bytes = terminals.reduce((sum, { recordingBytes }) => sum + recordingBytes, 0)
      return { sessions: terminals.length, bytes }
    },
    async sweep() {
      const age = agreed.age()
      await moveOrphansAside(age)
      const old = await past(age)
      for (let from = 0; from < old.length; from += atOnce) {
        const batch = old.slice(from, from + atOnce)
        await store.transact((tx) => {
          for (const { id } of batch) tx.remove('terminals', id)
        })
        for (const { id } of batch) await recordings.forget(id)
      }
      return old.length
    },
  }
}
