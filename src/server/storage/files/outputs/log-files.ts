import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'

/** Of one task, in its folder. */
export const logFiles = ['output.log', 'output.idx'] as const

/** Opens without creating, unless told to. */
export async function openBoth(directory: string, create: boolean): Promise<[FileHandle, FileHandle]> {
  const flags = constants.O_RDWR | (create ? constants.O_CREAT : 0)
  const log = await open(join(directory, logFiles[0]), flags, 0o600)
  try {
    return [log, await open(join(directory, logFiles[1]), constants.O_RDWR | constants.O_CREAT, 0o600)]
  } catch (error) {
    await log.close()
    throw error
  }
}
