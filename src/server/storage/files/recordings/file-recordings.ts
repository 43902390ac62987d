import { createReadStream } from 'node:fs'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { RsmError } from '../../../../core/errors.ts'
import { Mutex } from '../../../../core/mutex.ts'
import type { Disk } from '../../../../disk/disk.ts'
import { syncDirectory } from '../../../../disk/durable.ts'
import type { Recordings } from '../../ports/recordings.ts'
import { createOrphans } from '../orphans.ts'
import { RecordingFile } from './recording-file.ts'
import { sumsSuffix, verifyRecording } from './sums.ts'

export const recordingSuffix = '.cast'

/** One asciicast file a recording, in a directory of its own. */
export async function openFileRecordings(directory: string, disk?: Disk): Promise<Recordings> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const syncs = new Mutex()
  const orphans = createOrphans(directory)
  const pathOf = (id: string) => join(directory, id + recordingSuffix)
  return {
    async create(id, header, failed) {
      const file = await RecordingFile.create(pathOf(id), header, { syncs, failed, disk })
      await syncDirectory(directory).catch(async (error: unknown) => {
        await file.end().catch(() => undefined)
        throw error
      })
      return file
    },
    content: (id) => createReadStream(pathOf(id)),
    reopen: (id, size, failed) => RecordingFile.reopen(pathOf(id), size, { syncs, failed, disk }),
    async read(id, bytes) {
      const path = pathOf(id)
      const found = await stat(path).catch(() => null)
      if (!found)
        throw new RsmError('gone', `The recording of terminal session ${id} is no longer kept`, {
          hint: 'the server keeps recordings for --recording-retention days',
        })
      const size = Math.min(found.size, bytes ?? found.size)
      if (size === 0) return Readable.from([])
      await verifyRecording(path, size, bytes ?? size)
      return createReadStream(path, { end: size - 1 })
    },
    async forget(id) {
      await rm(pathOf(id), { force: true })
      await rm(pathOf(id) + sumsSuffix, { force: true })
    },
    async list() {
      const found: { id: string; changedAt: number }[] = []
      for (const name of await readdir(directory)) {
        if (!name.endsWith(recordingSuffix)) continue
        const { mtimeMs } = await stat(join(directory, name))
        found.push({ id: name.slice(0, -recordingSuffix.length), changedAt: mtimeMs })
      }
      return found
    },
    async moveAside(ids, now) {
      const there = new Set(await readdir(directory))
      const names = ids.flatMap((id) => [id + recordingSuffix, id + recordingSuffix + sumsSuffix])
      return orphans.moveAside(
        names.filter((name) => there.has(name)),
        now,
      )
    },
    orphans,
  }
}
