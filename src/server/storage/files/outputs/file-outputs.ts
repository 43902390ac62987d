import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { BoundedMap } from '../../../../core/bounded-map.ts'
import { Semaphore } from '../../../../core/mutex.ts'
import { type Disk, nullWhereMissing } from '../../../../disk/durable.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Outputs } from '../../ports/outputs.ts'
import { logFiles, TaskLog, type TaskLogEvents } from './task-log.ts'

/** Logs of finished tasks that stay open after a read, because paging through one reads it often. */
const openReaders = 64
const closeGrace = 5000
const none: ReadonlyMap<number, string> = new Map()
/** Libuv has four threads for all files; an fsync in each would block all reads and writes. */
const syncsAtOnce = 2

/** Closes a log after a grace period, because reads in flight hold its handle for some milliseconds. */
function closeSoon(_taskId: string, log: Promise<TaskLog | null>): void {
  setTimeout(() => void log.then((found) => found?.close()).catch(() => undefined), closeGrace).unref()
}

/** Outputs in `DIRECTORY/<taskId>/output.log`. `onSync` gets seconds and output bytes of every fsync. */
export function createFileOutputs(
  directory: string,
  hints: Hints,
  onFatal: (error: unknown) => void,
  onSync: TaskLogEvents['synced'] = () => undefined,
  disk?: Disk,
): Outputs {
  const writing = new Map<string, Promise<TaskLog | null>>()
  const reading = new BoundedMap<string, Promise<TaskLog | null>>(openReaders, closeSoon)

  const syncs = new Semaphore(syncsAtOnce)
  const damages = new Map<string, Map<number, string>>()
  const noteDamage = (taskId: string, hostId: number, sentence: string) => {
    const known = damages.get(taskId) ?? new Map<number, string>()
    damages.set(taskId, known.set(hostId, known.get(hostId) ?? sentence))
  }

  const openLog = (taskId: string, create: boolean) =>
    TaskLog.open(join(directory, taskId), create, {
      written: () => hints.publish('output', { id: taskId }),
      acquireSyncSlot: () => syncs.acquire(),
      synced: onSync,
      damaged: (hostId, sentence) => noteDamage(taskId, hostId, sentence),
      fatal: onFatal,
      disk,
    })

  function writer(taskId: string): Promise<TaskLog | null> {
    let log = writing.get(taskId)
    if (!log) {
      const read = reading.get(taskId)
      reading.delete(taskId)
      log = Promise.resolve(read).then((open) => open ?? openLog(taskId, true))
      writing.set(taskId, log)
      log.catch(() => writing.delete(taskId))
    }
    return log
  }

  function reader(taskId: string): Promise<TaskLog | null> {
    const open = writing.get(taskId) ?? reading.get(taskId)
    if (open) return open
    const log = openLog(taskId, false).then((found) => {
      if (!found) reading.delete(taskId)
      return found
    })
    log.catch(() => reading.delete(taskId))
    reading.set(taskId, log)
    return log
  }

  return {
    async append(taskId, entry) {
      const log = await writer(taskId)
      await log?.append(entry)
    },
    async read(taskId, query) {
      const log = await reader(taskId)
      return log ? log.read(query) : { entries: [], next: query.after }
    },
    async readBefore(taskId, query) {
      const log = await reader(taskId)
      return log ? log.readBefore(query) : { entries: [], next: 0, previous: 0 }
    },
    async readLines(taskId, query) {
      const log = await reader(taskId)
      return log ? log.readLines(query) : { lines: [], next: query.after }
    },
    async cursorBeforeLast(taskId, count, query) {
      const log = await reader(taskId)
      return log ? log.cursorBeforeLast(count, query) : 0
    },
    damages: (taskId) => damages.get(taskId) ?? none,
    async progress(taskId) {
      const log = await reader(taskId)
      return log ? log.progress() : new Map()
    },
    async finish(taskId) {
      const log = writing.get(taskId)
      if (!log) return
      writing.delete(taskId)
      reading.set(taskId, log)
    },
    async size(taskId) {
      let bytes = 0
      for (const name of logFiles) {
        const found = await stat(join(directory, taskId, name)).catch(nullWhereMissing)
        bytes += found?.size ?? 0
      }
      return bytes
    },
    async forget(taskId) {
      const open = [writing.get(taskId), reading.get(taskId)]
      writing.delete(taskId)
      reading.delete(taskId)
      damages.delete(taskId)
      for (const log of open) await (await log)?.close()
      for (const name of logFiles) await rm(join(directory, taskId, name), { force: true })
    },
    async close() {
      const open = [...writing.values(), ...reading.values()]
      writing.clear()
      reading.clear()
      await Promise.allSettled(open.map(async (log) => (await log)?.close()))
    },
  }
}
