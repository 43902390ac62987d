import { join } from 'node:path'
import { string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import { baseDirectory } from '../contexts/private-files.ts'

/** Where rsm keeps a user's lasting files. */
export function stateDirectory(name: string): string {
  return join(baseDirectory('STATE'), 'rsm', name)
}

/** The help of `--data-dir`, the same on every machine. */
export function dataDirectoryHelp(name: 'server' | 'agent'): string {
  return `data directory (root: ${join('/var/lib/rsm', name)}, else ~/.local/…)`
}

/** `/var/lib/rsm/NAME` for root, as services have it, else the user's own state directory. */
export function defaultDataDirectory(name: 'server' | 'agent'): string {
  return process.getuid?.() === 0 ? join('/var/lib/rsm', name) : stateDirectory(name)
}

/** `--data-dir` of the commands that speak to a server on this machine. */
export const serverDirectoryFlag = string({
  env: 'RSM_DATA_DIR',
  helpValue: 'DIR',
  description: dataDirectoryHelp('server'),
})

/** The directory that an option names, or the default. @throws RsmError `usage` for an empty one, which would be wherever one stands. */
export function givenDirectory(option: string, given: string | undefined, otherwise: string): string {
  if (given?.trim() !== '') return given ?? otherwise
  throw new RsmError('usage', `${option} is empty`, { hint: `leave it out for ${otherwise}` })
}

/** The directory that `--data-dir` names, or the default. Errors: as of `givenDirectory`. */
export function dataDirectory(name: 'server' | 'agent', given: string | undefined): string {
  return givenDirectory('--data-dir', given, defaultDataDirectory(name))
}
