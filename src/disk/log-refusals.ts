import { RsmError } from '../core/errors.ts'

/** The file of a log lost its name while it was open. */
export class LogDeleted extends RsmError {
  constructor(path: string, hint: string) {
    super(
      'unavailable',
      `${path} was deleted under the running server: nothing can be written any more, and writes since then are lost`,
      { hint },
    )
  }
}

/** A write or an fsync failed: the content of the file is unknown. */
export function failedLog(name: string, error: unknown): RsmError {
  const cause = error instanceof Error ? error.message : String(error)
  const message = `the disk failed while writing ${name} (${cause}); restart the server`
  return new RsmError('unavailable', message, { cause: error })
}
