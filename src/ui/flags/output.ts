import { boolean, string } from '@oclif/core/flags'

const helpGroup = 'OUTPUT'

/** The options that say what is shown of a running task (contract §9). */
export const outputFlags = {
  output: string({
    helpGroup,
    char: 'o',
    helpValue: 'FORMAT',
    options: ['live', 'grouped'],
    description: 'live (default) or grouped',
  }),
  grouped: boolean({ helpGroup, char: 'b', description: 'equal output once, under its hosts: -o grouped' }),
  'no-prefix': boolean({ helpGroup, char: 'N', description: 'no host name before the lines' }),
  raw: boolean({ helpGroup, description: 'let control sequences of the hosts through' }),
}

export interface OutputFlags {
  readonly output?: string | undefined
  readonly grouped: boolean
  readonly 'no-prefix': boolean
  readonly raw: boolean
}

export interface ShowOptions {
  readonly grouped: boolean
  readonly prefix: boolean
  readonly raw: boolean
}

export function readShowOptions(flags: OutputFlags): ShowOptions {
  return {
    grouped: flags.grouped || flags.output === 'grouped',
    prefix: !flags['no-prefix'],
    raw: flags.raw,
  }
}
