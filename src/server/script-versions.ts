import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileDurably } from '../disk/durable.ts'
import type { ScriptRecord } from './store/records.ts'

/** Former versions of scripts: a file each, so that the store does not grow with history. The present one is in the store. */
export interface ScriptVersions {
  /** Durable when it resolves. A version that was kept already is written again, with the same content. */
  keep(script: ScriptRecord): Promise<void>
  /** Numbers of the versions kept, ascending. */
  list(id: number): Promise<number[]>
  read(id: number, version: number): Promise<ScriptRecord | null>
  forget(id: number): Promise<void>
}

/** `DIRECTORY/<id>/<version>.json`. */
export function createScriptVersions(directory: string): ScriptVersions {
  const folder = (id: number) => join(directory, String(id))
  const file = (id: number, version: number) => join(folder(id), `${version}.json`)
  return {
    async keep(script) {
      await mkdir(folder(script.id), { recursive: true, mode: 0o700 })
      await writeFileDurably(file(script.id, script.version), JSON.stringify(script), 0o600)
    },
    async list(id) {
      const names = await readdir(folder(id)).catch(absent)
      return (names ?? [])
        .flatMap((name) => /^([1-9]\d*)\.json$/.exec(name)?.[1] ?? [])
        .map(Number)
        .sort((a, b) => a - b)
    },
    async read(id, version) {
      const text = await readFile(file(id, version), 'utf8').catch(absent)
      return text === null ? null : (JSON.parse(text) as ScriptRecord)
    },
    forget: (id) => rm(folder(id), { recursive: true, force: true }),
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
