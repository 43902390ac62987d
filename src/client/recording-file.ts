import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { RsmError } from '../core/errors.ts'
import { temporaryName } from '../disk/durable.ts'

/** The bytes of a local file; errors when it is read: `usage`. */
export async function* readRecordingFile(path: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(path)) yield chunk as Buffer
  } catch (error) {
    throw failure('read', path, error)
  }
}

/** Writes all of a recording into a file of mode 0600 (it shows what was on a screen), or none of it; answers its bytes. */
export async function writeRecordingFile(path: string, recording: Readable): Promise<number> {
  const temporary = temporaryName(path)
  try {
    const handle = await open(temporary, 'wx', 0o600)
    try {
      await pipeline(recording, handle.createWriteStream({ autoClose: false }))
      await handle.sync()
      const { size } = await handle.stat()
      await rename(temporary, path)
      return size
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw failure('write', path, error)
  } finally {
    await rm(temporary, { force: true })
  }
}

function failure(verb: string, path: string, error: unknown): unknown {
  if (error instanceof RsmError) return error
  const { code = '', message } = error as NodeJS.ErrnoException
  const why =
    code === 'ENOENT' ? (verb === 'read' ? 'there is no such file' : 'there is no such directory') : message
  return new RsmError('usage', `cannot ${verb} ${path}: ${why}`, { cause: error })
}
