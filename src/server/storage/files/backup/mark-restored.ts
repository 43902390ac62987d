import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { RsmError } from '../../../../core/errors.ts'
import { type Clock, isoTime } from '../../../../disk/clock.ts'
import { sha256 } from '../../../../disk/digest.ts'
import type { Log } from '../../../../disk/log.ts'
import { systemActor } from '../../audit/entry.ts'
import { deliveryOf, restoreData, wantsIt } from '../../new-delivery.ts'
import type { RestoreNote } from '../../records/run.ts'
import { createNotedHead, openFileAuditLog } from '../audit/file-audit-log.ts'
import { keepStatus } from '../presence/kept-status.ts'
import { type JsonStore, openJsonStore } from '../store/store.ts'
import type { BackupHeader } from './format.ts'

interface Parts {
  readonly clock: Clock
  readonly log: Log
}

function unfit(what: string): RsmError {
  return new RsmError('invalid', `the backup is damaged: ${what}`, {
    hint: 'nothing was changed; take another backup',
  })
}

/**
 * Notes in the store that what was to start in it may have run since (contract §11): the next start holds it. Agents know
 * of later work of the runs that went on after the backup; that proves nothing more.
 */
async function mark(store: JsonStore, { createdAt }: BackupHeader, now: number): Promise<void> {
  const at = isoTime(now)
  const { sequence } = store
  const running = (await store.query('tasks', { where: { equals: { status: 'RUNNING' } } })).items
  const open = (await store.query('runs')).items.filter(({ last }) => last === null)
  const restore: RestoreNote = {
    noticedAt: at,
    reason: `rsm server restore brought back the backup of ${createdAt}`,
    hostId: null,
    agentId: null,
    taskIds: running.map(({ id }) => id),
    strangers: open.map(({ id }) => id),
    confirmedAt: null,
  }
  const id = randomBytes(15).toString('base64url')
  const webhooks = (await store.query('webhooks')).items.filter((one) => wantsIt(one, 'server.restore'))
  await store.transact((tx) => {
    for (const former of open) tx.put('runs', { ...former, last: sequence })
    tx.put('runs', { id, startedAt: at, first: sequence, last: sequence, restore })
    for (const webhook of webhooks)
      tx.put('deliveries', deliveryOf(webhook, 'server.restore', restoreData(restore), now))
  })
}

/** Hosts with an agent were heard before, though the backup does not say when. */
async function noteHosts(directory: string, store: JsonStore, log: Log): Promise<void> {
  const hosts = (await store.query('hosts')).items.filter(({ agent }) => agent !== null)
  const kept = hosts.map(({ id }) => ({
    hostId: id,
    status: 'OFFLINE' as const,
    reason: 'not heard since the restore',
    lastHeartbeatAt: null,
    agentStatus: null,
  }))
  await keepStatus(join(directory, 'presence.json'), kept, log)
}

/** Opens the store and the audit log of an unpacked backup as a server would, and notes in both that they are restored. */
export async function markRestored(
  directory: string,
  header: BackupHeader,
  { clock, log }: Parts,
): Promise<void> {
  const onFatal = (error: unknown) => {
    throw error
  }
  const store = await openJsonStore({ directory: join(directory, 'store'), onFatal })
  try {
    if (store.storeId !== header.storeId) throw unfit('its store is another one')
    if (store.sequence !== header.sequence)
      throw unfit(`its store ends at ${store.sequence}, not at ${header.sequence}`)
    await mark(store, header, clock.now())
    await noteHosts(directory, store, log)
  } finally {
    await store.close()
  }
  const audit = await openFileAuditLog({
    directory: join(directory, 'audit'),
    storeId: header.storeId,
    clock,
    log,
    sha256,
    onFatal,
  })
  try {
    const missing = await createNotedHead(join(directory, 'audit.head'), audit).missing()
    if (missing !== null) throw unfit(missing)
    const detail = { createdAt: header.createdAt, sequence: header.sequence, version: header.version }
    const own = { actor: systemActor, ip: null, object: null, outcome: 'SUCCESS' } as const
    await audit.append({ ...own, action: 'server.restore', detail })
  } finally {
    await audit.close()
  }
}
