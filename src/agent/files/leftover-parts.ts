import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Log } from '../log.ts'
import { ownProcess } from '../processes/own-process.ts'
import { readParts } from './order.ts'

const run = promisify(execFile)
/** Milliseconds; a disk that does not answer holds up no result. */
const patience = 20_000

/**
 * Removes what temporary files an order has left whose process was killed: by a process of whoever made them, as what lies in a
 * directory of another user is nothing to touch as root. Never rejects.
 */
export async function sweepParts(directory: string, log: Log): Promise<void> {
  const parts = readParts(directory)
  if (parts.length === 0) return
  const { file, argv } = ownProcess('__copy', directory, 'clean')
  await run(file, argv, { timeout: patience, killSignal: 'SIGKILL' }).catch((error: unknown) =>
    log('WARN', 'temporary files of a copy may be left', {
      parts: parts.map(({ path, name }) => `${path}/${name}`),
      error: String(error),
    }),
  )
}
