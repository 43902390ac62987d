import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { showHead } from '../../../../core/audit.ts'
import { checkedJson } from '../../../../disk/digest.ts'
import { createLog } from '../../../../disk/log.ts'
import type { RunRecord } from '../../records/run.ts'
import { blobsOf, type Items, type Writer, writeFiles } from '../../streams.ts'
import { freeze, Tables } from '../../tables.ts'
import { auditFileName } from '../audit-file.ts'
import { openDirectoryFiles } from '../directory-files.ts'
import { appendLines } from '../history.ts'
import { logFiles } from '../outputs/task-log.ts'
import { type KeptStatus, saveStatus } from '../presence.ts'
import { openFileRecordings, recordingSuffix, sumsSuffix } from '../recordings.ts'
import { createScriptVersions } from '../script-versions.ts'
import { makeStore } from '../store/recovery.ts'
import { markerName } from '../used.ts'

const mode = 0o600

function rethrow(error: unknown): never {
  throw error
}

function textOf(item: Items['results']): string {
  if ('damaged' in item) return item.damaged
  const { taskId: _, ...remains } = item
  return Buffer.from(checkedJson(JSON.stringify(remains))).toString('latin1')
}

/** Fills an empty data directory; the caller syncs all of it at the end. */
export function createDirectoryWriter(path: string): Writer {
  const tables = new Tables()
  let storeId = ''
  return {
    async identity(items) {
      for await (const item of items) {
        storeId = item.storeId
        Object.assign(tables.lastIds, item.lastIds)
      }
    },
    async records(items) {
      for await (const { noun, record } of items) {
        tables.apply({ noun, id: record.id, record: freeze(record) })
        // The next start must continue after everything that agents may know about.
        if (noun === 'runs') tables.sequence = Math.max(tables.sequence, (record as RunRecord).last ?? 0)
      }
    },
    async executions(items) {
      for await (const { execution } of items)
        tables.apply({ noun: 'executions', id: execution.id, record: freeze(execution) })
      const directory = join(path, 'store')
      await mkdir(directory, { mode: 0o700 })
      await makeStore(directory, storeId, tables, new AbortController().signal)
      await writeFile(join(path, markerName), `${storeId}\n`, { mode })
    },
    async results(items) {
      for await (const item of items) {
        const directory = join(path, 'tasks', item.taskId)
        await mkdir(directory, { recursive: true, mode: 0o700 })
        await writeFile(join(directory, 'task.json'), textOf(item), { encoding: 'latin1', mode })
      }
    },
    async versions(items) {
      const versions = createScriptVersions(join(path, 'scripts'))
      for await (const script of items) await versions.save(script)
    },
    async output(items) {
      for await (const { blob, bytes } of blobsOf(items)) {
        const directory = join(path, 'tasks', blob.id)
        await mkdir(directory, { recursive: true, mode: 0o700 })
        await writeFile(join(directory, logFiles[0]), bytes, { flag: 'wx', mode })
      }
    },
    async recordings(items) {
      const directory = join(path, 'terminals')
      const recordings = await openFileRecordings(directory)
      for await (const { blob, bytes } of blobsOf(items)) {
        const writer = await recordings.create(blob.id, new Uint8Array(), rethrow)
        for await (const piece of bytes) await writer.append([piece])
        await writer.end()
        if (blob.sums !== undefined)
          await writeFile(join(directory, blob.id + recordingSuffix + sumsSuffix), blob.sums, { mode })
      }
    },
    async files(items) {
      await writeFiles(await openDirectoryFiles(join(path, 'files')), items)
    },
    async audit(items) {
      const directory = join(path, 'audit')
      await mkdir(directory, { mode: 0o700 })
      await writeFile(join(directory, auditFileName), items, { flag: 'wx', mode })
    },
    async heads(items) {
      for await (const { noted } of items)
        if (noted) await writeFile(join(path, 'audit.head'), `${showHead(noted)}\n`, { mode })
    },
    async presence(items) {
      const kept: KeptStatus[] = []
      for await (const { greeting, revoked: _, ...rest } of items) kept.push({ ...rest, running: greeting })
      await saveStatus(join(path, 'presence.json'), kept, createLog('WARN'))
    },
    async metrics(items) {
      for await (const { hostId, day, lines } of items)
        await appendLines(join(path, 'metrics', String(hostId), `${day}.jsonl`), lines)
    },
  }
}
