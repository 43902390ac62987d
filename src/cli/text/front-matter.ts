import { RsmError } from '../../core/errors.ts'
import {
  type DeclaredParam,
  type FrontMatter,
  type FrontMatterFault,
  parseFrontMatter,
} from '../../core/scripts/front-matter.ts'
import { sanitizeLine, shellWord } from './sanitize.ts'

/** Faults listed in a message; the rest is counted. */
const maxReported = 5
const exampleHint =
  'write it like: # rsm: name=deploy, timeout=5m, param VERSION required "version to deploy", param LEVEL default=info'

/** Errors: `usage` with line and column of each fault. `notice` gets a line too far down to be read. */
export function readFrontMatter(
  text: string,
  what: string,
  notice: (text: string) => void = () => {},
): FrontMatter {
  const { matter, faults, late } = parseFrontMatter(text)
  if (faults.length > 0) throw new RsmError('usage', tellFaults(what, faults), { hint: exampleHint })
  if (late !== null)
    notice(`${what}, line ${late}: # rsm: is read only in the comments above the first command`)
  return matter
}

export function tellFaults(what: string, faults: readonly FrontMatterFault[]): string {
  const reported = faults
    .slice(0, maxReported)
    .map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`)
  if (faults.length > maxReported) reported.push(`and ${faults.length - maxReported} more`)
  return `${what}, ${reported.join('; ')}`
}

/** Command that runs a stored script: `rsm scripts run deploy -w HOST -p VERSION=VALUE [-p KEEP=3]`. */
export function usageLine(name: string, params: readonly DeclaredParam[]): string {
  const options = params.map((param) => {
    const option = paramOption(param, shellWord(sanitizeLine(param.default ?? 'VALUE')))
    return param.required ? option : `[${option}]`
  })
  return ['rsm scripts run', shellWord(name), '-w HOST', ...options].join(' ')
}

/** Option for a value. Secrets are never arguments, which all users of the machine can read. */
export function paramOption({ name, secret }: Pick<DeclaredParam, 'name' | 'secret'>, value: string): string {
  return secret ? `--secret-param ${name}` : `-p ${name}=${value}`
}

export async function renderParams(params: readonly DeclaredParam[]): Promise<string> {
  const { renderTable } = await import('./table.ts')
  return renderTable(params, [
    { heading: 'PARAM', value: ({ name }) => name },
    { heading: 'NEEDED', value: ({ required }) => (required ? 'yes' : 'no') },
    { heading: 'SECRET', value: ({ secret }) => (secret ? 'yes' : 'no') },
    { heading: 'DEFAULT', value: (param) => param.default },
    ...(params.some(({ pattern }) => pattern !== null)
      ? [{ heading: 'PATTERN', value: ({ pattern }: DeclaredParam) => pattern }]
      : []),
    { heading: 'DESCRIPTION', value: ({ description }) => description },
  ])
}
