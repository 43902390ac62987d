import { join } from 'node:path'
import { boolean, string } from '@oclif/core/flags'
import type { FlagInput } from '@oclif/core/interfaces'
import { RsmError } from '../../core/errors.ts'
import { baseDirectory } from '../contexts/private-files.ts'
import { integer } from './checks.ts'
import { type Variables, withVariables } from './environment.ts'

export const installFlags = {
  prefix: string({
    helpValue: 'DIR',
    description: 'install into DIR/bin (default: /usr/local; user: ~/.local)',
  }),
  'dry-run': boolean({ description: 'show what it would do; needs neither root nor systemd' }),
  'no-start': boolean({ description: 'install only; the service starts at the next boot' }),
  yes: boolean({ char: 'y', description: 'change settings of an earlier installation without asking' }),
}

export const uninstallFlags = {
  'keep-data': boolean({ exclusive: ['remove-data'], description: 'keep its data directory (default)' }),
  'remove-data': boolean({ description: 'remove its data directory too' }),
  'dry-run': boolean({ description: 'show what it would remove' }),
  yes: boolean({ char: 'y', description: 'do not ask' }),
}

export const serverDirectoryFlag = string({
  env: 'RSM_DATA_DIR',
  helpValue: 'DIR',
  description: dataDirectoryHelp('server'),
})

/** Settings of `server start`, and of `server retention` if no server runs. */
export const retentionFlags = withVariables('RSM_', {
  'task-retention': integer({
    default: 30,
    min: 0,
    max: 36_500,
    helpValue: 'DAYS',
    description: 'days to keep ended tasks and their output, 0 = forever',
  }),
  'recording-retention': integer({
    default: 90,
    min: 0,
    max: 36_500,
    helpValue: 'DAYS',
    description: 'days to keep ended sessions and recordings, 0 = forever',
  }),
  'max-output-bytes': string({
    default: '0',
    helpValue: 'SIZE',
    description: 'remove the oldest tasks if output exceeds SIZE; 0 = no limit',
  }),
})

export const insecureStore = boolean({
  env: 'RSM_INSECURE_STORE',
  description: 'allow plain text to a PostgreSQL on another machine',
})

export const storePasswordFile = string({
  env: 'RSM_STORE_PASSWORD_FILE',
  helpValue: 'FILE',
  description: 'file with the password of PostgreSQL (default: ~/.pgpass)',
})

/** For commands that work without a server; a running one knows its keys. */
export const keysFlag = string({
  env: 'RSM_KEYS',
  helpValue: 'DIR',
  description: 'directory of the keys, if no server runs (default: keys/)',
})

/** The directory of `--data-dir`, or the default. Errors: like `givenDirectory`. */
export function dataDirectory(name: 'server' | 'agent', given: string | undefined): string {
  return givenDirectory('--data-dir', given, defaultDataDirectory(name))
}

/** The given directory, or the default. Errors: `usage` for an empty one, which would mean the working directory. */
export function givenDirectory(option: string, given: string | undefined, otherwise: string): string {
  if (given?.trim() !== '') return given ?? otherwise
  throw new RsmError('usage', `${option} is empty`, { hint: `leave it out for ${otherwise}` })
}

/** `/var/lib/rsm/NAME` for root, as for services; otherwise in the user's state directory. */
export function defaultDataDirectory(name: 'server' | 'agent'): string {
  return process.getuid?.() === 0 ? join('/var/lib/rsm', name) : stateDirectory(name)
}

/** Help of `--data-dir`, independent of the user who reads it. */
export function dataDirectoryHelp(name: 'server' | 'agent'): string {
  return `data directory (root: ${join('/var/lib/rsm', name)}, else ~/.local/…)`
}

/** The user's persistent state (XDG_STATE_HOME). */
export function stateDirectory(name: string): string {
  return join(baseDirectory('STATE'), 'rsm', name)
}

interface Metadata {
  readonly flags: Readonly<Record<string, { readonly setFromDefault?: boolean } | undefined>>
}

/** The given flags as variables for the settings file of a service. */
export function typedSettings(
  declared: FlagInput,
  values: Readonly<Record<string, unknown>>,
  { flags }: Metadata,
  variables: Variables,
): Map<string, string> {
  const settings = new Map<string, string>()
  for (const [name, { env }] of Object.entries(declared)) {
    const value = values[name]
    const isGiven = variables.has(name) || flags[name]?.setFromDefault !== true
    if (env === undefined || value === undefined || !isGiven) continue
    settings.set(env, asText(value))
  }
  return settings
}

function asText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'number' ? `${value}` : (value as string)
}
