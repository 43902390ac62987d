import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AgreedClock, sinceBoot } from '../../../disk/agreed-clock.ts'
import type { Clock } from '../../../disk/clock.ts'
import { nullWhereMissing } from '../../../disk/durable.ts'
import type { Log } from '../../../disk/log.ts'
import { reportDoubt } from '../audit-entry.ts'
import type { AuditLog } from '../ports/audit-log.ts'
import type { Store } from '../ports/store.ts'
import { auditFileName } from './audit-file.ts'
import { parseName } from './store/files.ts'

interface Parts {
  store: Store
  audit: Pick<AuditLog, 'append'>
  clock: Clock
  log: Log
  /** Result of `lastWritten` before this start wrote anything. */
  written: number | null
}

/**
 * When a server last wrote to the data directory at `path`, in milliseconds since 1970; null for a new one.
 * Uses the times of files, because heartbeats update those even if no record changes for hours.
 */
export async function lastWritten(path: string): Promise<number | null> {
  const names = await readdir(join(path, 'store')).catch(nullWhereMissing)
  const journal = names?.filter((name) => parseName(name)?.kind === 'journal').toSorted()
  const files = [
    'presence.json',
    join('audit', auditFileName),
    join('store', journal?.at(-1) ?? 'store.json'),
  ]
  const times = await Promise.all(
    files.map((file) => stat(join(path, file)).then(({ mtimeMs }) => mtimeMs, nullWhereMissing)),
  )
  return newestTime(times)
}

function newestTime(times: (number | null)[]): number | null {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.max(...known)
}

async function newestOf(store: Store): Promise<number | null> {
  let newest: string | null = null
  const note = (time: string | null | undefined) => {
    if (time && time > (newest ?? '')) newest = time
  }
  for (const { lastUsedAt } of (await store.query('tokens')).items) note(lastUsedAt)
  for (const { createdAt, completedAt } of (await store.query('tasks')).items) note(completedAt ?? createdAt)
  for (const { startedAt, endedAt } of (await store.query('terminals')).items) note(endedAt ?? startedAt)
  for (const noun of ['users', 'hosts', 'scripts', 'clusters'] as const)
    for (const { updatedAt } of (await store.query(noun)).items) note(updatedAt)
  return newest === null ? null : Date.parse(newest)
}

/** Opens the saved state of the server's clock; reports to log and audit log when doubt begins or ends. */
export function openAgreedClock(
  path: string,
  { store, audit, clock, log, written }: Parts,
): Promise<AgreedClock> {
  return AgreedClock.open({
    path: join(path, 'clock.json'),
    clocks: { now: () => clock.now(), sinceBoot: clock.sinceBoot?.bind(clock) ?? sinceBoot },
    newest: async () => newestTime([await newestOf(store), written]),
    changed: reportDoubt({ audit, log }),
    log: (message, fields) => log.warn(fields, message),
  })
}
