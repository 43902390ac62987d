import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isoTime } from '../../../disk/clock.ts'
import { nullWhereMissing } from '../../../disk/durable.ts'
import type { Orphans } from '../ports/outputs.ts'

/** Folder of the orphans in their directory; no id has this name. */
export const orphansName = 'orphaned'
const day = 24 * 3600_000

const nameOf = (time: number) => isoTime(time).replaceAll(':', '-')
const timeOf = (name: string) => Date.parse(name.replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:'))

/** Orphans of one directory, in the same file system, so that moving is renaming. */
export function createOrphans(directory: string): Orphans {
  const place = join(directory, orphansName)
  return {
    async moveAside(names, now) {
      const folder = join(place, nameOf(now))
      await mkdir(folder, { recursive: true, mode: 0o700 })
      for (const name of names) await rename(join(directory, name), join(folder, name))
      return folder
    },
    async sweep(days, age) {
      if (days === 0) return
      const folders = (await readdir(place).catch(nullWhereMissing)) ?? []
      for (const name of folders)
        if (age(timeOf(name)) >= days * day) await rm(join(place, name), { recursive: true, force: true })
    },
  }
}
