import { boolean, string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import { nearest } from '../../core/text/nearest.ts'
import { type FormatName, formatNames } from '../output/formats.ts'
import { type FlagsOf, repeated } from './checks.ts'

const helpGroup = 'OUTPUT'

export const outputFlags = {
  output: string({
    helpGroup,
    char: 'o',
    helpValue: 'FORMAT[=FILE]',
    ...repeated,
    description: `${formatNames.join(', ')}; =FILE writes a file`,
  }),
  grouped: boolean({
    helpGroup,
    char: 'b',
    description: 'show equal output once, under its hosts: -o grouped',
  }),
  diff: boolean({ helpGroup, description: 'like -b, smaller groups as a diff against the largest' }),
  outdir: string({
    helpGroup,
    helpValue: 'DIR',
    description: 'also write one file per host and stream, like DIR/web1.out',
  }),
  'no-prefix': boolean({ helpGroup, char: 'N', description: 'do not prefix lines with the host name' }),
  raw: boolean({ helpGroup, description: 'let control sequences through, except that \\r ends a line' }),
}

type OutputFlags = FlagsOf<typeof outputFlags>

export interface ShowOptions {
  /** Format on stdout; undefined for none. */
  readonly format: FormatName | undefined
  readonly files: readonly { readonly format: FormatName; readonly path: string }[]
  readonly outdir?: string | undefined
  readonly diff: boolean
  readonly prefix: boolean
  readonly raw: boolean
}

function formatNamed(word: string): FormatName {
  const found = formatNames.find((name) => name === word.toLowerCase())
  if (found !== undefined) return found
  const near = word.toLowerCase() === 'json' ? undefined : nearest(word, formatNames)
  throw new RsmError(
    'usage',
    `unknown format: ${word}${near === undefined ? '' : ` (did you mean ${near}?)`}`,
    {
      hint:
        word.toLowerCase() === 'json'
          ? '--json prints the task once it ends, -o ndjson every event as it happens'
          : `-o takes one of ${formatNames.join(', ')}`,
    },
  )
}

/** Reads the output flags. `standard`: default format on stdout. Errors: `usage`. */
export function readShowOptions(flags: OutputFlags, json: boolean, standard?: FormatName): ShowOptions {
  const onStdout = new Set<FormatName>()
  const files: { format: FormatName; path: string }[] = []
  for (const word of flags.output ?? []) {
    const at = word.indexOf('=')
    const format = formatNamed(at === -1 ? word : word.slice(0, at))
    const path = word.slice(at + 1)
    if (at === -1 || path === '-') onStdout.add(format)
    else if (path === '')
      throw new RsmError('usage', `-o ${word} needs a file`, { hint: `-o ${format}=FILE` })
    else if (files.some((file) => file.path === path))
      throw new RsmError('usage', `two formats can't go into one file: ${path}`)
    else files.push({ format, path })
  }
  if (flags.grouped) onStdout.add('grouped')
  if (flags.diff && !files.some(({ format }) => format === 'grouped')) onStdout.add('grouped')
  const [first, second] = onStdout
  if (second !== undefined)
    throw new RsmError('usage', `only one format can be on stdout, not both ${first} and ${second}`, {
      hint: `give the other a file: -o ${second}=FILE`,
    })
  if (json && first !== undefined)
    throw new RsmError('usage', `--json and ${first} can't both be on stdout`, {
      hint: `give the format a file: -o ${first}=FILE`,
    })
  return {
    format: json ? undefined : (first ?? standard),
    files,
    outdir: flags.outdir,
    diff: flags.diff,
    prefix: !flags['no-prefix'],
    raw: flags.raw,
  }
}

/** Errors: `usage` for output that would be lost. */
export function refuseDetached(detach: boolean, { files, outdir }: ShowOptions): void {
  const path = outdir ?? files[0]?.path
  if (detach && path !== undefined)
    throw new RsmError('usage', `--detach does not wait, so nothing would be written to ${path}`, {
      hint: 'later: rsm tasks wait TASK -o FORMAT=FILE',
    })
}
