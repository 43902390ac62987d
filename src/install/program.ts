import { existsSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isSingleFile, ownPath } from '../disk/own-files.ts'
import type { Service } from './service.ts'

export interface Program {
  /** Words before the command: an executable, or Node and rsm's script. */
  readonly command: readonly string[]
  /** File to copy into place first; null if it is there already. */
  readonly from: string | null
}

/** Path of the program in packages. */
export const packagedProgram = '/usr/bin/rsm'

/**
 * A single executable runs from `/usr/bin` (packages) or `PREFIX/bin`, and is copied there from elsewhere. An
 * npm installation runs from where it is.
 */
export function programFor(service: Service, prefix: string | undefined): Program {
  if (!isSingleFile) return { command: [process.execPath, ownPath('bin/run.js')], from: null }
  if (prefix === undefined && process.execPath === packagedProgram)
    return { command: [packagedProgram], from: null }
  const target = join(resolve(prefix ?? service.prefix), 'bin/rsm')
  const isThere = existsSync(target) && realpathSync(target) === realpathSync(process.execPath)
  return { command: [target], from: isThere ? null : '/proc/self/exe' }
}
