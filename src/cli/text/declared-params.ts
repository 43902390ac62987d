import type { DeclaredParam } from '../../core/scripts/front-matter.ts'
import { sanitizeLine } from './sanitize.ts'
import { shellWord } from './shell-word.ts'

/** How a value is given: secrets never as an argument, which all users of the machine can read. */
export function paramOption({ name, secret }: Pick<DeclaredParam, 'name' | 'secret'>, value: string): string {
  return secret ? `--secret-param ${name}` : `-p ${name}=${value}`
}

/** What to type to run a stored script: `rsm scripts run deploy -w HOST -p VERSION=VALUE [-p KEEP=3]`. */
export function usageLine(name: string, params: readonly DeclaredParam[]): string {
  const options = params.map((param) => {
    const option = paramOption(param, shellWord(sanitizeLine(param.default ?? 'VALUE')))
    return param.required ? option : `[${option}]`
  })
  return ['rsm scripts run', shellWord(name), '-w HOST', ...options].join(' ')
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
