import { invalid } from '../../core/errors.ts'
import type { Copy } from '../../core/protocol/http/files.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { Target } from '../../core/protocol/http/targets.ts'
import type { GateOption, TaskCreate } from '../../core/protocol/http/tasks.ts'
import type { ScriptType } from '../../core/scripts/script-form.ts'
import { type CopiedFile, copyOf, fetchOf } from './copy-of.ts'
import { given, numberOf, optionsOf } from './options-of.ts'

const longestName = 60

/** Parses lines of KEY=VALUE. Errors: `invalid` for other lines. */
function paramsOf(text: string): Record<string, string> {
  const params: Record<string, string> = {}
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const at = line.indexOf('=')
    if (at < 1) throw invalid([{ field: 'params', message: `A parameter is KEY=VALUE: ${line}` }])
    params[line.slice(0, at).trim()] = line.slice(at + 1)
  }
  return params
}

/** Name of a command in lists: its first line, or undefined if that is blank. */
export function nameOf(content: string): string | undefined {
  const line =
    content
      .trim()
      .split('\n')[0]
      ?.replaceAll(/\p{Cc}+/gu, ' ')
      .trim() ?? ''
  if (line === '') return undefined
  return line.length > longestName ? `${line.slice(0, longestName - 1)}…` : line
}

/** Field name of a declared param; the prefix avoids collisions with other fields. */
export const paramField = (name: string): string => `param ${name}`

type Field = (name: string) => string

/** Declared params as in the form, so that a cleared default stays cleared; omits other empty ones. */
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

function scriptOf(content: string, type: string) {
  const name = nameOf(content)
  return { type: type as ScriptType, content, ...(name !== undefined && { name }) }
}

/** The script of a gate; undefined without one. */
function gateOf(field: Field, gate: 'verify' | 'rollback'): GateOption | undefined {
  const scriptId = numberOf(field(`${gate}.scriptId`))
  if (scriptId !== undefined) return { scriptId }
  const content = field(`${gate}.script.content`)
  if (content === '') return undefined
  const timeout = numberOf(field(`${gate}.script.timeout`))
  const script = scriptOf(content, field(`${gate}.script.type`))
  return { script: { ...script, ...(timeout !== undefined && { timeout }) } }
}

function gatesOf(field: Field): Pick<TaskCreate, 'verify' | 'rollback'> {
  const [verify, rollback] = [gateOf(field, 'verify'), gateOf(field, 'rollback')]
  const times = given({
    retries: numberOf(field('verify.retries')),
    intervalSeconds: numberOf(field('verify.intervalSeconds')),
    timeout: numberOf(field('verify.timeout')),
  })
  return { ...(verify && { verify: { ...verify, ...times } }), ...(rollback && { rollback }) }
}

/** Options with a target: the selector, or else the `chosen` hosts. */
function planOf(field: Field, chosen: Target | undefined) {
  const selector = field('selector').trim()
  const target = selector === '' ? chosen : { selector }
  if (target === undefined) throw invalid([{ field: 'target', message: 'Choose hosts or enter a selector.' }])
  return { target, ...optionsOf(field) }
}

/**
 * Body of a copy task; its `fileId` is empty until the upload. `kept`: copy of a schedule, whose file is used
 * if none is chosen. Errors: `invalid` at the fields, also for what would be refused after the upload.
 */
export function copyTaskOf(
  field: Field,
  chosen: Target | undefined,
  file: CopiedFile | undefined,
  kept?: Copy | null,
): Pick<TaskCreate, 'copy'> & ReturnType<typeof planOf> {
  const plan = planOf(field, chosen)
  const copy = copyOf(field, file)
  if (file !== undefined) return { copy: { fileId: '', ...copy }, ...plan }
  if (!kept) throw invalid([{ field: 'copy.fileId', message: 'Choose a file.' }])
  const { fileId, sourceMode } = kept
  return { copy: { fileId, ...copy, ...(sourceMode !== undefined && { sourceMode }) }, ...plan }
}

/** Body of a fetch task. Errors: `invalid` at the fields. */
export function fetchTaskOf(field: Field, chosen: Target | undefined): TaskCreate {
  const plan = planOf(field, chosen)
  return { fetch: fetchOf(field), ...plan }
}

/** Secret params of a script that declares none; `names` are separated by commas or spaces. */
export function secretsNamed(names: string): Script['params'] {
  const all = new Set(names.split(/[\s,]+/).filter(Boolean))
  return [...all].map((name) => ({
    name,
    required: true,
    secret: true,
    default: null,
    description: '',
    pattern: null,
  }))
}

/** Body of a script task; `declared`: params of its stored scripts. Errors: `invalid` at the fields. */
export function taskOf(field: Field, chosen?: Target, declared: Script['params'] = []): TaskCreate {
  const plan = planOf(field, chosen)
  const typed = paramsOf(field('params'))
  const { params, secretParams } = declaredOf(field, declared)
  const all = { ...typed, ...params }
  const scriptId = field('scriptId')
  return {
    ...(scriptId === ''
      ? { script: scriptOf(field('content'), field('type')) }
      : { scriptId: Number(scriptId) }),
    ...plan,
    ...(isGiven(all) && { params: all }),
    ...(isGiven(secretParams) && { secretParams }),
    ...gatesOf(field),
  }
}
