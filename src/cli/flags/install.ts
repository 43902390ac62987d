import { boolean, string } from '@oclif/core/flags'
import type { FlagInput } from '@oclif/core/interfaces'
import type { Variables } from './environment.ts'

/** What the installation of either service takes. */
export const installFlags = {
  prefix: string({
    helpValue: 'DIR',
    description: 'install into DIR/bin (default: /usr/local; user: ~/.local)',
  }),
  'dry-run': boolean({ description: 'show what it would do; needs neither root nor systemd' }),
  'no-start': boolean({ description: 'install only; the service starts at the next boot' }),
  yes: boolean({ char: 'y', description: 'change settings of an earlier installation without asking' }),
}

/** As a variable has it. */
function asText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'number' ? `${value}` : (value as string)
}

interface Metadata {
  readonly flags: Readonly<Record<string, { readonly setFromDefault?: boolean } | undefined>>
}

/** The variables of the flags that were given, with their values: what a service reads from its file of settings. */
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

/** What the removal of either service takes. */
export const uninstallFlags = {
  'keep-data': boolean({ exclusive: ['remove-data'], description: 'keep its data directory (default)' }),
  'remove-data': boolean({ description: 'remove its data directory too' }),
  'dry-run': boolean({ description: 'show what it would remove' }),
  yes: boolean({ char: 'y', description: 'do not ask' }),
}
