import { randomBytes } from 'node:crypto'
import { type AuditHead, beforeFirst, chainEntry } from '../../../core/audit.ts'
import { isoTime } from '../../../disk/clock.ts'
import { sha256 } from '../../../disk/digest.ts'
import { bounded, parseEntry, systemActor } from '../audit-entry.ts'
import { deliveryOf, restoreData, wantsIt } from '../new-delivery.ts'
import type { HostRecord } from '../records/host.ts'
import type { RestoreNote, RunRecord } from '../records/run.ts'
import type { TaskRecord } from '../records/task.ts'
import type { WebhookRecord } from '../records/webhook.ts'
import { type Items, type LastKnown, newline, type Reader } from '../streams.ts'
import type { BackupHeader, BackupKind } from './format.ts'
import { broken } from './unpack.ts'

/** State of hosts with an agent, which were heard before; the backup does not say when. */
const unheard = ({ id }: HostRecord): LastKnown => ({
  hostId: id,
  status: 'OFFLINE',
  reason: 'not heard since the restore',
  lastHeartbeatAt: null,
  agentStatus: null,
  greeting: null,
  says: {},
  linkLostAt: null,
  warns: [],
  revoked: false,
})

/** Last of the lines in `text`, which ends with a newline. */
function lastLine(text: Buffer): Buffer {
  const before = text.length < 2 ? -1 : text.lastIndexOf(newline, text.length - 2)
  return text.subarray(before + 1)
}

async function* nothing(): AsyncGenerator<never> {}

/**
 * Streams of a backup, with a note of the restore (contract §11): the next start holds work that may have run
 * since. Runs that were open at the backup continued after it, so marks of their later work do not prove
 * another restore. Read once, in the order of `kinds`.
 */
export function asRestored(backup: Pick<Reader, BackupKind>, header: BackupHeader, now: number): Reader {
  const at = isoTime(now)
  const { createdAt, sequence, version, storeId } = header
  const hosts: HostRecord[] = []
  let head: AuditHead = beforeFirst

  async function* identity(): AsyncGenerator<Items['identity']> {
    let isKnown = false
    for await (const item of backup.identity()) {
      isKnown = item.storeId === storeId
      if (!isKnown) throw broken('is damaged: it holds another store')
      yield item
    }
    if (!isKnown) throw broken('is damaged: it does not name its store')
  }

  async function* records(): AsyncGenerator<Items['records']> {
    const [taskIds, strangers]: [string[], string[]] = [[], []]
    const webhooks: WebhookRecord[] = []
    for await (const item of backup.records()) {
      const { noun, record, isOpen } = item
      if (noun === 'tasks' && (record as TaskRecord).status === 'RUNNING')
        taskIds.push((record as TaskRecord).id)
      if (noun === 'runs' && isOpen) strangers.push((record as RunRecord).id)
      if (noun === 'webhooks' && wantsIt(record as WebhookRecord, 'server.restore'))
        webhooks.push(record as WebhookRecord)
      if (noun === 'hosts' && (record as HostRecord).agent !== null) hosts.push(record as HostRecord)
      yield item
    }
    const restore: RestoreNote = {
      noticedAt: at,
      reason: `rsm server restore brought back the backup of ${createdAt}`,
      hostId: null,
      agentId: null,
      taskIds,
      strangers,
      confirmedAt: null,
    }
    const id = randomBytes(15).toString('base64url')
    yield { noun: 'runs', record: { id, startedAt: at, first: sequence, last: sequence, restore } }
    for (const webhook of webhooks)
      yield { noun: 'deliveries', record: deliveryOf(webhook, 'server.restore', restoreData(restore), now) }
  }

  async function* audit(): AsyncGenerator<Uint8Array> {
    let last: Buffer = Buffer.alloc(0)
    for await (const lines of backup.audit()) {
      last = Buffer.from(lastLine(Buffer.concat([last, lines])))
      yield lines
    }
    const facts = { at, actor: systemActor, ip: null, object: null, outcome: 'SUCCESS' } as const
    const event = bounded({ ...facts, action: 'server.restore', detail: { createdAt, sequence, version } })
    const { line, entry } = chainEntry(parseEntry(last) ?? beforeFirst, event, sha256)
    head = { id: entry.id, hash: entry.hash }
    yield Buffer.from(`${line}\n`)
  }

  return {
    ...backup,
    identity,
    records,
    audit,
    async *heads() {
      yield { head, noted: head }
    },
    async *presence() {
      yield* hosts.map(unheard)
    },
    metrics: nothing,
  }
}
