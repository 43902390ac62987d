import { RsmError } from '../../core/errors.ts'
import { cutUpgrade } from '../../disk/upgrade-traces.ts'
import { isWithoutServer } from './control.ts'

/** In place of `error`, where no server runs since an upgrade was cut: that, and how to go on. */
export function cutFault(dataDir: string, error: unknown): unknown {
  const cut = cutUpgrade(dataDir)
  const isStopped = isWithoutServer(error) || (error instanceof RsmError && error.code === 'interrupted')
  if (cut === null || !isStopped) return error
  return new RsmError('unavailable', cut.message, { hint: cut.advice, cause: error })
}
