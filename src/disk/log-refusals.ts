import { RsmError } from '../core/errors.ts'

/** The file of a log lost its name while it was open. */
export class LogDeleted extends RsmError {
  constructor(path: string, hint: string) {
    super(
      'unavailable',
      `${path} was deleted under the running server: nothing can be written any more, and what was written since is gone`,
      { hint },
    )
  }
}

/** A write or an fsync failed: what is in the file can not be known. */
export function failedLog(name: string, error: unknown): RsmError {
  const cause = error instanceof Error ? error.message : String(error)
  const message = `the disk failed while writing ${name} (${cause}); the server has to be restarted`
  return new RsmError('unavailable', message, { cause: error })
}
