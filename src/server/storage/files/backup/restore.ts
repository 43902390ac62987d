import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditHead, beforeFirst, chainEntry } from '../../../../core/audit.ts'
import { RsmError } from '../../../../core/errors.ts'
import { isoTime } from '../../../../disk/clock.ts'
import { sha256 } from '../../../../disk/digest.ts'
import { syncDirectory, temporaryName } from '../../../../disk/durable.ts'
import { bounded, parseEntry, systemActor } from '../../audit-entry.ts'
import {
  type BackupHeader,
  type BackupKind,
  backupKinds,
  clockName,
  decoded,
  keysName,
} from '../../backup/format.ts'
import { type KeyFiles, openKeys } from '../../backup/sealed-keys.ts'
import { broken, type NextPart, type Unpacked, unpackBackup } from '../../backup/unpack.ts'
import { keyFault, keyNames } from '../../keys.ts'
import { deliveryOf, restoreData, wantsIt } from '../../new-delivery.ts'
import type { HostRecord } from '../../records/host.ts'
import type { KeyRecord, RestoreNote, RunRecord } from '../../records/run.ts'
import type { TaskRecord } from '../../records/task.ts'
import type { WebhookRecord } from '../../records/webhook.ts'
import { copyStore } from '../../stream-sums.ts'
import { type Items, type LastKnown, newline, type Reader } from '../../streams.ts'
import { createDirectoryWriter } from '../streams/writer.ts'
import { becomeOwner, explain, fillDirectory, openOffline, readOffline, syncFiles } from './offline.ts'

export interface Restored extends Unpacked {
  readonly directory: string
  readonly hasKeys: boolean
}

async function writeKeys(directory: string, keys: KeyFiles): Promise<void> {
  await mkdir(directory, { mode: 0o700 })
  for (const name of [...keyNames, 'tls.key', 'tls.crt']) {
    const bytes = keys[name]
    if (bytes !== undefined) await writeFile(join(directory, name), bytes, { flag: 'wx', mode: 0o600 })
  }
}

/**
 * Adds the keys of a backup to a data directory that has none. Errors: those of `unpackBackup`; `conflict` if
 * a server runs, if there are keys already, or if they do not belong to the store.
 */
export async function restoreKeys(
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string,
): Promise<Restored> {
  const { value: sealed, ...unpacked } = await unpackBackup(source, async (_, next) => {
    const part = await next()
    return part?.name === keysName ? part.bytes : null
  })
  const { storeId } = unpacked.header
  const refuse = (why: string, hint: string): never => {
    throw new RsmError('conflict', why, { hint: `nothing was changed; ${hint}` })
  }
  if (sealed === null) return refuse('the backup holds no keys', 'name one that was made with --with-keys')
  const keys = await openKeys(sealed, passphrase, storeId)
  const dataLock = await openOffline(path)
  const directory = dataLock.path
  try {
    const { manifest, tables } = await readOffline(directory)
    const isOwn = manifest.storeId === storeId
    const isFit = (name: (typeof keyNames)[number]) =>
      keyFault(name, keys[name] ?? null, (tables.get('keys', name) as KeyRecord | undefined)?.keyId, true) ===
      null
    if (!isOwn || !keyNames.every(isFit))
      refuse(`the keys in the backup are not those of ${directory}`, 'name a backup of the same server')
    const place = join(directory, 'keys')
    const there = await readdir(place).catch(() => [])
    if (there.length > 0)
      refuse(`${place} holds ${there[0]} already`, 'move it elsewhere to restore the keys')
    await becomeOwner(directory)
    const temporary = temporaryName(place)
    try {
      await writeKeys(temporary, keys)
      await syncFiles(temporary)
      await rename(temporary, place)
      await syncDirectory(directory)
    } catch (error) {
      throw explain(error, place, 'restored')
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
    return { ...unpacked, directory, hasKeys: true }
  } finally {
    await dataLock.release()
  }
}

/** Streams of a backup, each read once, in the order of `backupKinds`; `smallFile` gets earlier entries. */
async function readerOf(
  next: NextPart,
  smallFile: (name: string, bytes: Uint8Array) => Promise<void>,
): Promise<Pick<Reader, BackupKind>> {
  let part = await next()
  for (; part !== null && (part.name === keysName || part.name === clockName); part = await next())
    await smallFile(part.name, part.bytes)
  async function* bytesOf(kind: BackupKind): AsyncGenerator<Uint8Array> {
    for (; part !== null; part = await next()) {
      if (!part.name.startsWith(`${kind}/`)) break
      yield part.bytes
    }
    if (kind === backupKinds.at(-1) && part !== null) throw broken(`is damaged: ${part.name} is out of order`)
  }
  const streams = backupKinds.map((kind) => [
    kind,
    () => decoded(kind, bytesOf(kind)) as AsyncIterable<Items[BackupKind]>,
  ])
  return Object.fromEntries(streams) as Pick<Reader, BackupKind>
}

/**
 * Unpacks a backup beside `path`, and renames it to `path` once all of it is checked, so that a failure
 * leaves nothing new there. `passphrase` opens its keys; without one they are omitted. Errors: those of
 * `unpackBackup`, and `conflict` if the directory is in use.
 */
export async function restoreBackup(
  source: AsyncIterable<Uint8Array>,
  path: string,
  passphrase: string | undefined,
  now: number,
): Promise<Restored> {
  const { directory, value } = await fillDirectory(path, {
    what: 'restored',
    fill: (temporary) =>
      unpackBackup(source, async (header, next) => {
        let hasKeys = false
        const backup = await readerOf(next, async (name, bytes) => {
          if (name === clockName) await writeFile(join(temporary, name), bytes, { flag: 'wx', mode: 0o600 })
          else if (passphrase !== undefined) {
            await writeKeys(join(temporary, 'keys'), await openKeys(bytes, passphrase, header.storeId))
            hasKeys = true
          }
        })
        await copyStore(asRestored(backup, header, now), createDirectoryWriter(temporary), () => undefined)
        return hasKeys
      }),
  })
  const { value: hasKeys, ...unpacked } = value
  return { ...unpacked, directory, hasKeys }
}

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
function asRestored(backup: Pick<Reader, BackupKind>, header: BackupHeader, now: number): Reader {
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
