import type { Mutex } from '../../../core/mutex.ts'
import type { Age } from '../../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import type { Log } from '../../../disk/log.ts'
import { withReserve } from '../../../disk/reserve.ts'
import type { FileKeeper } from '../../files/files.ts'
import { idempotencyLife } from '../../services/tasks/start-task.ts'
import type { Data } from '../../storage/ports/data.ts'
import type { History } from '../../storage/ports/presence.ts'
import type { ScriptVersions, Store } from '../../storage/ports/store.ts'
import { removeNeedlessTombstones } from '../../storage/tombstones.ts'
import type { TerminalRetention } from '../../terminals/retention.ts'
import type { Retention } from './retention.ts'

const interval = 3600_000
/** Milliseconds. Soon after the start, so that a server that restarts often gets to it. */
export const firstSweepAfter = 60_000
/** Milliseconds that ended webhook deliveries are kept for inspection. */
const deliveriesFor = 7 * 24 * 3600_000
/** Milliseconds that expired tokens are kept: they are refused at once, but the clock may be wrong. */
const expiredFor = 7 * 24 * 3600_000
/** Removals per transaction, so that a sweep does not block other writes for long. */
const atOnce = 500

interface Housekept {
  store: Store
  history: History
  versions: ScriptVersions
  retention: Retention
  oldTerminals: TerminalRetention
  files: Pick<FileKeeper, 'sweep'>
  /** Held while a backup is made, because it may include old data; the next sweep retries. */
  dataLock: Mutex
  /** Runs on one server of the store at a time; the others retry at the next sweep. */
  tryExclusive: Data['tryExclusive']
  agreed: { age(): Age }
  clock: Clock
  log: Log
  /** Milliseconds. */
  firstAfter: number
}

/**
 * Removes expired records, old tasks, sessions, metrics and script versions, and unused files, every hour.
 */
export function createHousekeeping({
  store,
  history,
  versions,
  retention,
  oldTerminals,
  files,
  dataLock,
  tryExclusive,
  agreed,
  clock,
  log,
  firstAfter,
}: Housekept): {
  stop(): void
} {
  async function sweep(): Promise<void> {
    const age = agreed.age()
    const isLongOver = (token: { createdAt: string; expiresAt: string }) =>
      Math.min(age(Date.parse(token.createdAt)), age(Date.parse(token.expiresAt))) >= expiredFor
    const gone: (['tokens' | 'enrollments', number] | ['idempotency' | 'deliveries', string])[] = []
    const earlier = (milliseconds: number) => isoTime(clock.now() - milliseconds)
    const expired = { where: { before: { expiresAt: earlier(expiredFor) } } }
    for (const noun of ['tokens', 'enrollments'] as const)
      for (const token of (await store.query(noun, expired)).items)
        if (isLongOver(token)) gone.push([noun, token.id])
    const repeatable = { where: { before: { createdAt: earlier(idempotencyLife) } } }
    for (const { id, createdAt } of (await store.query('idempotency', repeatable)).items)
      if (age(Date.parse(createdAt)) >= idempotencyLife) gone.push(['idempotency', id])
    const delivered = { where: { before: { endedAt: earlier(deliveriesFor) } } }
    for (const { id, endedAt } of (await store.query('deliveries', delivered)).items)
      if (age(Date.parse(endedAt ?? '')) >= deliveriesFor) gone.push(['deliveries', id])
    for (let from = 0; from < gone.length; from += atOnce)
      await store.transact((tx) => {
        for (const [noun, id] of gone.slice(from, from + atOnce)) tx.remove(noun, id)
      })
    await removeNeedlessTombstones(store)
  }
  async function removeOld(): Promise<void> {
    // Files after tasks, because old tasks may need them.
    const tasks = retention
      .sweep()
      .then((count) => count > 0 && log.info({ count, days: retention.days }, 'removed old tasks'))
      .catch((error: unknown) => log.warn({ err: error }, 'could not remove old tasks'))
      .then(() => files.sweep())
      .then((count) => count > 0 && log.info({ count }, 'removed files that no task needs'))
      .catch((error: unknown) => log.warn({ err: error }, 'could not remove files that no task needs'))
    const sessions = oldTerminals
      .sweep()
      .then((count) => count > 0 && log.info({ count }, 'removed old terminal sessions'))
      .catch((error: unknown) => log.warn({ err: error }, 'could not remove old terminal sessions'))
    const scripts = versions
      .sweep(
        async (id) => (await store.get('scripts', id)) !== undefined,
        retention.days,
        agreed.age(),
        clock.now(),
      )
      .then(
        (folder) =>
          folder !== null &&
          log.warn({ folder }, 'versions of scripts that are not in the store were moved aside'),
      )
      .catch((error: unknown) => log.warn({ err: error }, 'could not move versions of removed scripts aside'))
    await Promise.all([tasks, sessions, scripts])
  }
  async function removeAll(): Promise<void> {
    const expired = sweep().catch((error: unknown) =>
      log.warn({ err: error }, 'could not remove expired records'),
    )
    const metrics = history
      .sweep(agreed.age())
      .catch((error: unknown) => log.warn({ err: error }, 'could not remove old metrics history'))
    const release = dataLock.tryAcquire()
    if (release !== null) await removeOld().finally(release)
    await Promise.all([expired, metrics])
  }
  const poll = () => {
    withReserve(() => tryExclusive(removeAll)).catch((error: unknown) =>
      log.warn({ err: error }, 'could not remove old data'),
    )
  }
  const first = setTimeout(poll, firstAfter).unref()
  const timer = setInterval(poll, interval).unref()
  return {
    stop() {
      clearTimeout(first)
      clearInterval(timer)
    },
  }
}
