import { createReadStream } from 'node:fs'
import { open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { RsmError } from '../../../core/errors.ts'
import { syncDirectory } from '../../../disk/durable.ts'
import { createOrphans } from '../../embedded/orphans.ts'
import { createSyncTurns } from '../../embedded/outputs/sync-turns.ts'
import type { Log } from '../../log.ts'
import type { Orphans } from '../../seams/orphans.ts'
import type { TerminalRecord } from '../../seams/records.ts'
import type { TerminalSession } from '../session.ts'
import { Recording, type RecordingEvents } from './recording.ts'
import { recoverRecording } from './recovery.ts'
import { reopenSums, sumsSuffix, verifyRecording } from './sums.ts'

const suffix = '.cast'

/** The recordings of all sessions: one asciicast file each. */
export interface Recordings {
  /** Errors: `unavailable` where it can't be written. */
  create(record: TerminalRecord, events: RecordingEvents): Promise<Recording>
  /** Takes up the recording of a session that a former process left open, and fills its replay from it. */
  reopen(session: TerminalSession, events: RecordingEvents): Promise<void>
  /** The first `bytes` of it, all of it by default; `gone` where it is kept no longer. */
  read(id: string, bytes?: number): Promise<Readable>
  forget(id: string): Promise<void>
  /** The sessions that there are recordings of, and when those were last written, in milliseconds since 1970. */
  list(): Promise<{ id: string; changedAt: number }[]>
  /** Moves recordings of no known session aside; answers where to. */
  moveAside(ids: readonly string[], now: number): Promise<string>
  readonly orphans: Pick<Orphans, 'sweep'>
}

export function createRecordings(directory: string, log: Log): Recordings {
  const turn = createSyncTurns(1)
  const orphans = createOrphans(directory)
  const pathOf = (id: string) => join(directory, id + suffix)
  return {
    async create(record, events) {
      const { id, hostname, cols, rows, startedAt, term, shell } = record
      const header = {
        version: 2,
        width: cols,
        height: rows,
        timestamp: Math.floor(Date.parse(startedAt) / 1000),
        title: `${record.user}@${hostname}`,
        env: { TERM: term ?? 'xterm-256color', ...(shell === null ? {} : { SHELL: shell }) },
      }
      try {
        const recording = await Recording.create(pathOf(id), header, { turn, events })
        await syncDirectory(directory).catch(async (error: unknown) => {
          await recording.end().catch(() => undefined)
          throw error
        })
        return recording
      } catch (cause) {
        log.error({ err: cause, sessionId: id }, 'a recording could not be begun')
        throw new RsmError(
          'unavailable',
          'The recording of the session can not be written, and none is opened unrecorded',
          { cause, retryAfter: 30 },
        )
      }
    },
    async reopen(session, events) {
      const path = pathOf(session.record.id)
      const { state, size } = await recoverRecording(path, (sequence, json) => session.recall(sequence, json))
      if (size) session.record = { ...session.record, ...size }
      const sums = await reopenSums(path, state.bytes)
      session.recording = new Recording(await open(path, 'r+'), sums, state, { turn, events })
    },
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
        if (!name.endsWith(suffix)) continue
        const { mtimeMs } = await stat(join(directory, name))
        found.push({ id: name.slice(0, -suffix.length), changedAt: mtimeMs })
      }
      return found
    },
    async moveAside(ids, now) {
      const there = new Set(await readdir(directory))
      const names = ids.flatMap((id) => [id + suffix, id + suffix + sumsSuffix])
      return orphans.moveAside(
        names.filter((name) => there.has(name)),
        now,
      )
    },
    orphans,
  }
}
