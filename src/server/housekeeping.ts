import type { Clock } from './clock.ts'
import type { History } from './history/history.ts'
import type { Log } from './log.ts'
import type { ScriptVersions } from './script-versions.ts'
import { idempotencyLife } from './services/start-task.ts'
import type { Store } from './store/store.ts'

const interval = 3600_000
/** Removals of one transaction, so that no sweep holds up others' writes. */
const atOnce = 500

interface Housekept {
  store: Store
  history: History
  versions: ScriptVersions
  clock: Clock
  log: Log
}

/** Removes what has expired, every hour: sessions and tokens, enrolment tokens, idempotency keys, old metrics, versions of removed scripts. */
export function createHousekeeping({ store, history, versions, clock, log }: Housekept): { stop(): void } {
  async function sweep(): Promise<void> {
    const now = clock.now()
    const gone: (['tokens' | 'enrollments', number] | ['idempotency', string])[] = []
    for (const { id, expiresAt } of await store.all('tokens'))
      if (now >= Date.parse(expiresAt)) gone.push(['tokens', id])
    for (const { id, expiresAt } of await store.all('enrollments'))
      if (now >= Date.parse(expiresAt)) gone.push(['enrollments', id])
    for (const { id, createdAt } of await store.all('idempotency'))
      if (now - Date.parse(createdAt) >= idempotencyLife) gone.push(['idempotency', id])
    for (let from = 0; from < gone.length; from += atOnce)
      await store.transact((tx) => {
        for (const [noun, id] of gone.slice(from, from + atOnce)) tx.remove(noun, id)
      })
  }
  const timer = setInterval(() => {
    sweep().catch((error: unknown) => log.warn({ err: error }, 'could not remove what has expired'))
    history
      .sweep(clock.now())
      .catch((error: unknown) => log.warn({ err: error }, 'could not remove old metrics history'))
    versions
      .sweep(async (id) => (await store.get('scripts', id)) !== undefined)
      .catch((error: unknown) => log.warn({ err: error }, 'could not remove versions of removed scripts'))
  }, interval)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
