import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BoundedMap } from '../../../core/bounded-map.ts'
import { RsmError } from '../../../core/errors.ts'
import { checkedJson, withoutCheck } from '../../../disk/digest.ts'
import { isMissing, nullWhereMissing, writeFileDurably } from '../../../disk/durable.ts'
import type { Part, Results, TaskRemains } from '../ports/outputs.ts'
import { createOrphans, orphansName } from './orphans.ts'

/** Finished tasks cached for reads right after their end. */
const kept = 64

export function partOf<T extends { hostId: number }>(all: readonly T[], part?: Part): readonly T[] {
  if (part === undefined) return all
  if ('offset' in part) return all.slice(part.offset, part.offset + part.limit)
  const hostIds = new Set(part.hostIds)
  return all.filter(({ hostId }) => hostIds.has(hostId))
}

/** One file per task, so that the store does not grow with history. */
export function createFileResults(directory: string): Results {
  const recent = new BoundedMap<string, TaskRemains>(kept)
  /** Reads in flight; concurrent readers share them. */
  const reading = new Map<string, Promise<TaskRemains | null>>()
  const orphans = createOrphans(directory)
  const path = (taskId: string) => join(directory, taskId, 'task.json')
  const drop = (taskId: string) => {
    recent.delete(taskId)
    reading.delete(taskId)
  }

  async function readFrom(taskId: string): Promise<TaskRemains | null> {
    try {
      const { results, ...rest } = parse(path(taskId), await readFile(path(taskId)))
      // Older files lack newer fields.
      const none = { containment: null, changed: null, phase: null, verify: null, rollback: null }
      const added = { ...none, survivors: [] }
      return { ...rest, results: results.map((result) => ({ ...added, ...result })) }
    } catch (error) {
      if (isMissing(error)) return null
      throw error
    }
  }

  async function read(taskId: string): Promise<TaskRemains | null> {
    const known = recent.get(taskId)
    if (known) return known
    const shared = reading.get(taskId)
    if (shared) return shared
    const own = readFrom(taskId)
    reading.set(taskId, own)
    try {
      const archived = await own
      if (archived && reading.get(taskId) === own) recent.set(taskId, archived)
      return archived
    } finally {
      if (reading.get(taskId) === own) reading.delete(taskId)
    }
  }

  return {
    async write(taskId, archived) {
      await mkdir(join(directory, taskId), { recursive: true, mode: 0o700 })
      await writeFileDurably(path(taskId), checkedJson(JSON.stringify(archived)), 0o600)
      drop(taskId)
      recent.set(taskId, archived)
    },
    async read(taskId, part) {
      const remains = await read(taskId)
      return remains && part ? { ...remains, results: [...partOf(remains.results, part)] } : remains
    },
    async forget(taskId) {
      await rm(join(directory, taskId), { recursive: true, force: true })
      drop(taskId)
    },
    async list() {
      const names = (await readdir(directory).catch(nullWhereMissing)) ?? []
      return names.filter((name) => name !== orphansName)
    },
    orphans: {
      ...orphans,
      moveAside(taskIds, now) {
        for (const taskId of taskIds) drop(taskId)
        return orphans.moveAside(taskIds, now)
      },
    },
  }
}

/** Files of 0.1.0 have no checksum. */
function parse(path: string, file: Buffer): TaskRemains {
  try {
    const json = withoutCheck(file)
    if (json) return JSON.parse(json.toString('utf8')) as TaskRemains
  } catch {
    // Reported below.
  }
  throw new RsmError('gone', `the results of the task are damaged: ${path}`, {
    hint: 'restore the file from a backup; the output beside it is readable',
  })
}
