import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../../core/errors.ts'
import { isDiskFull, nullWhereMissing, writeFileDurably } from '../../../disk/durable.ts'
import { maxVersions, type ScriptVersions } from '../ports/store.ts'
import type { ScriptRecord } from '../records/script.ts'
import { createOrphans } from './orphans.ts'

/** Seconds in which someone may have freed disk space. */
const retryAfter = 5

/** `DIRECTORY/<id>/<version>.json`. */
export function createScriptVersions(directory: string, most: number = maxVersions): ScriptVersions {
  const folder = (id: number) => join(directory, String(id))
  const file = (id: number, version: number) => join(folder(id), `${version}.json`)
  const orphans = createOrphans(directory)
  const forget = (id: number) => rm(folder(id), { recursive: true, force: true })
  return {
    async save(script) {
      const { id, version } = script
      try {
        await mkdir(folder(id), { recursive: true, mode: 0o700 })
        await writeFileDurably(file(id, version), JSON.stringify(script), 0o600)
      } catch (error) {
        if (!isDiskFull(error)) throw error
        const reason =
          'the disk of the data directory is full; no version of a script can be kept until there is room'
        throw new RsmError('unavailable', reason, { cause: error, retryAfter })
      }
      // Versions are numbered without gaps, so each new one replaces one.
      await rm(file(id, version - most), { force: true })
    },
    async list(id) {
      const names = await readdir(folder(id)).catch(nullWhereMissing)
      return (names ?? [])
        .flatMap((name) => /^([1-9]\d*)\.json$/.exec(name)?.[1] ?? [])
        .map(Number)
        .sort((a, b) => a - b)
        .slice(-most)
    },
    async read(id, version) {
      const text = await readFile(file(id, version), 'utf8').catch(nullWhereMissing)
      return text === null ? null : (JSON.parse(text) as ScriptRecord)
    },
    forget,
    async sweep(exists, days, age, now) {
      const gone: string[] = []
      // Ids are never reused: a script that is missing after its folder was listed cannot appear later.
      for (const name of (await readdir(directory).catch(nullWhereMissing)) ?? [])
        if (/^[1-9]\d*$/.test(name) && !(await exists(Number(name)))) gone.push(name)
      const folder = gone.length > 0 ? await orphans.moveAside(gone, now) : null
      await orphans.sweep(days, age)
      return folder
    },
  }
}
