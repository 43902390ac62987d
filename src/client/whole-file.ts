import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { RsmError } from '../core/errors.ts'
import { temporaryName } from '../disk/durable.ts'

/** Reads a local file. Errors: `usage`. */
export async function* readLocalFile(path: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(path)) yield chunk as Buffer
  } catch (error) {
    throw failure('read', path, error)
  }
}

/** Writes a file of mode 0600 completely or not at all: it gets its name at the end. Returns its size in bytes. */
export async function writeWholeFile(path: string, bytes: Readable): Promise<number> {
  const temporary = temporaryName(path)
  try {
    const file = createWriteStream(temporary, { flags: 'wx', mode: 0o600, flush: true })
    await pipeline(bytes, file)
    await rename(temporary, path)
    return file.bytesWritten
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
