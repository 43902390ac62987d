import { join } from 'node:path'
import { type ClockDoubt, doubtSentence } from '../core/clock-doubt.ts'
import { AgreedClock, sinceBoot } from '../disk/agreed-clock.ts'
import { systemActor } from './audit/actor.ts'
import type { AuditLog } from './audit/audit-log.ts'
import type { Clock } from './clock.ts'
import type { Log } from './log.ts'
import type { Store } from './store/store.ts'

interface Parts {
  store: Store
  audit: Pick<AuditLog, 'append'>
  clock: Clock
  log: Log
}

/** The newest time that the store tells of; null for one that was never used. */
async function newestOf(store: Store): Promise<number | null> {
  let newest: string | null = null
  const note = (time: string | null | undefined) => {
    if (time && time > (newest ?? '')) newest = time
  }
  for (const { lastUsedAt } of await store.all('tokens')) note(lastUsedAt)
  for (const { createdAt, completedAt } of await store.all('tasks')) note(completedAt ?? createdAt)
  for (const { startedAt, endedAt } of await store.all('terminals')) note(endedAt ?? startedAt)
  for (const noun of ['users', 'hosts', 'scripts', 'clusters'] as const)
    for (const { updatedAt } of await store.all(noun)) note(updatedAt)
  return newest === null ? null : Date.parse(newest)
}

/** What is kept of the server's clock in its data directory; log and audit log hear when it begins or ends to be doubted. */
export function openAgreedClock(path: string, { store, audit, clock, log }: Parts): Promise<AgreedClock> {
  function changed(doubt: ClockDoubt | null): void {
    const message = doubt ? doubtSentence(doubt) : 'the clock is believed'
    log[doubt ? 'error' : 'info']({ ...doubt }, message)
    const outcome = doubt ? 'FAILED' : 'SUCCESS'
    audit
      .append({
        actor: systemActor,
        ip: null,
        action: doubt ? 'clock.doubt' : 'clock.agree',
        object: null,
        outcome,
        detail: { ...doubt, message },
      })
      .catch((error: unknown) => log.warn({ err: error }, 'an audit entry could not be written'))
  }
  return AgreedClock.open({
    path: join(path, 'clock.json'),
    clocks: { now: () => clock.now(), sinceBoot: clock.sinceBoot?.bind(clock) ?? sinceBoot },
    newest: () => newestOf(store),
    changed,
    log: (message, fields) => log.warn(fields, message),
  })
}
