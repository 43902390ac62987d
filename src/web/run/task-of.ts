import type { Script } from '../../core/protocol/http/scripts.ts'
import type { TaskCreate } from '../../core/protocol/http/tasks.ts'
import type { ScriptType } from '../../core/script/script-form.ts'
import type { Strategy } from '../../core/task/task.ts'

const longestName = 60

/** Lines of KEY=VALUE; a sentence where one is none. */
function paramsOf(text: string): Record<string, string> | string {
  const params: Record<string, string> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const at = line.indexOf('=')
    if (at < 1) return `A parameter is KEY=VALUE: ${line}`
    params[line.slice(0, at).trim()] = line.slice(at + 1)
  }
  return params
}

/** What lists call a command: its first line, or nothing where that says nothing. */
function nameOf(content: string): string | undefined {
  const line =
    content
      .trim()
      .split('\n')[0]
      ?.replaceAll(/\p{Cc}+/gu, ' ')
      .trim() ?? ''
  if (line === '') return undefined
  return line.length > longestName ? `${line.slice(0, longestName - 1)}…` : line
}

/** The name of a declared param's field: what is declared can be called as a field of the form is. */
export const paramField = (name: string): string => `param ${name}`

type Field = (name: string) => string

/**
 * The params that a script declares: as the form shows them, so that a default that was taken out is not put back. What is
 * empty and has no default is not given.
 */
function declaredOf(field: Field, declared: Script['params']): Pick<TaskCreate, 'params' | 'secretParams'> {
  const given = declared
    .map((param) => ({ ...param, value: field(paramField(param.name)) }))
    .filter(({ value, default: normal }) => value !== '' || normal !== null)
  const valuesOf = (isSecret: boolean) =>
    Object.fromEntries(
      given.filter(({ secret }) => secret === isSecret).map(({ name, value }) => [name, value]),
    )
  return { params: valuesOf(false), secretParams: valuesOf(true) }
}

const isGiven = (params: Record<string, string> | undefined) =>
  params !== undefined && Object.keys(params).length > 0

/** The body of `POST /api/tasks` for the fields of the form, or a sentence that says what is missing. */
export function taskOf(
  field: Field,
  hostIds: number[],
  declared: Script['params'] = [],
): TaskCreate | string {
  const selector = field('selector').trim()
  if (hostIds.length === 0 && selector === '') return 'Choose hosts, or write a selector.'
  const typed = paramsOf(field('params'))
  if (typeof typed === 'string') return typed
  const { params, secretParams }: Pick<TaskCreate, 'params' | 'secretParams'> =
    declared.length === 0 ? { params: typed } : declaredOf(field, declared)
  const scriptId = field('scriptId')
  const content = field('content')
  const name = nameOf(content)
  const timeout = field('timeout')
  const runAs = field('runAs').trim()
  return {
    ...(scriptId === ''
      ? { script: { type: field('type') as ScriptType, content, ...(name !== undefined && { name }) } }
      : { scriptId: Number(scriptId) }),
    target: hostIds.length > 0 ? { hostIds } : { selector },
    strategy: field('strategy') as Strategy,
    ...(isGiven(params) && { params }),
    ...(isGiven(secretParams) && { secretParams }),
    ...(timeout !== '' && { timeout: Number(timeout) }),
    ...(runAs !== '' && { runAs }),
  }
}
