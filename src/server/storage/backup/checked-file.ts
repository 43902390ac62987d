import { rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { RsmError } from '../../../core/errors.ts'
import {
  isDiskFull,
  isMissing,
  removeOnSignal,
  removeStale,
  replaceDurably,
  temporaryName,
} from '../../../disk/durable.ts'
import { whyUnwritable } from '../../../disk/named-files.ts'
import { type Unpacked, unpackBackup } from './unpack.ts'

/** Checks a backup while `write` gets its bytes. Errors: those of `unpackBackup`. */
export async function checkBackup(
  backup: AsyncIterable<Uint8Array>,
  write: (chunk: Uint8Array) => Promise<unknown>,
): Promise<Unpacked> {
  async function* passed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of backup) {
      await write(chunk)
      yield chunk
    }
  }
  return unpackBackup(passed(), async () => undefined)
}

function unwritable(path: string, error: unknown): RsmError {
  const why = isMissing(error) ? 'there is no such directory' : whyUnwritable(error)
  // A full disk is not the fault of the user who typed the name.
  return new RsmError(isDiskFull(error) ? 'unavailable' : 'usage', `can't write ${path}: ${why}`, {
    cause: error,
  })
}

/**
 * Writes a backup to a file of mode 0600, and renames it into place once all of it is written and checked.
 */
export async function writeCheckedFile(
  path: string,
  backup: AsyncIterable<Uint8Array>,
): Promise<Unpacked & { bytes: number }> {
  await removeStale(path)
  const temporary = temporaryName(path)
  const remove = () => rmSync(temporary, { force: true })
  let file: FileHandle
  try {
    file = await open(temporary, 'wx', 0o600)
  } catch (error) {
    throw unwritable(path, error)
  }
  const stop = removeOnSignal(remove)
  let bytes = 0
  try {
    const unpacked = await checkBackup(backup, async (chunk) => {
      await file.writeFile(chunk).catch((error: unknown) => {
        throw unwritable(path, error)
      })
      bytes += chunk.length
    })
    await file.sync()
    await file.close()
    await replaceDurably(temporary, path)
    return { ...unpacked, bytes }
  } catch (error) {
    await file.close()
    throw error instanceof RsmError ? error : unwritable(path, error)
  } finally {
    remove()
    stop()
  }
}
