import type { ScriptType } from '../../core/protocol/http/scripts.ts'
import type { Strategy, TaskCreate } from '../../core/protocol/http/tasks.ts'

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

/** The body of `POST /api/tasks` for the fields of the form, or a sentence that says what is missing. */
export function taskOf(field: (name: string) => string, hostIds: number[]): TaskCreate | string {
  const selector = field('selector').trim()
  if (hostIds.length === 0 && selector === '') return 'Choose hosts, or write a selector.'
  const params = paramsOf(field('params'))
  if (typeof params === 'string') return params
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
    ...(Object.keys(params).length > 0 && { params }),
    ...(timeout !== '' && { timeout: Number(timeout) }),
    ...(runAs !== '' && { runAs }),
  }
}
