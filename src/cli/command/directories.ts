import { join } from 'node:path'
import { string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import { baseDirectory } from '../contexts/private-files.ts'

/** The user's persistent state (XDG_STATE_HOME). */
export function stateDirectory(name: string): string {
  return join(baseDirectory('STATE'), 'rsm', name)
}

/** Help of `--data-dir`, independent of the user who reads it. */
export function dataDirectoryHelp(name: 'server' | 'agent'): string {
  return `data directory (root: ${join('/var/lib/rsm', name)}, else ~/.local/…)`
}

/** `/var/lib/rsm/NAME` for root, as for services; otherwise in the user's state directory. */
export function defaultDataDirectory(name: 'server' | 'agent'): string {
  return process.getuid?.() === 0 ? join('/var/lib/rsm', name) : stateDirectory(name)
}

export const serverDirectoryFlag = string({
  env: 'RSM_DATA_DIR',
  helpValue: 'DIR',
  description: dataDirectoryHelp('server'),
})

/** The given directory, or the default. Errors: `usage` for an empty one, which would mean the working directory. */
export function givenDirectory(option: string, given: string | undefined, otherwise: string): string {
  if (given?.trim() !== '') return given ?? otherwise
  throw new RsmError('usage', `${option} is empty`, { hint: `leave it out for ${otherwise}` })
}

/** The directory of `--data-dir`, or the default. Errors: like `givenDirectory`. */
export function dataDirectory(name: 'server' | 'agent', given: string | undefined): string {
  return givenDirectory('--data-dir', given, defaultDataDirectory(name))
}
