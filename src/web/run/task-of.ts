import { type FieldFault, invalid } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/clusters.ts'
import type { Copy, Fetch } from '../../core/protocol/http/files.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { GateOption, TaskCreate } from '../../core/protocol/http/tasks.ts'
import type { ScriptType } from '../../core/scripts/script-form.ts'
import { writtenPathFault } from '../../core/tasks/remote-path.ts'
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

/** Longest text with a diff, in bytes (contract §13). */
const longestDiff = 1024 * 1024

export type CopiedFile = Pick<File, 'name' | 'size'>

/** Why no diff is possible; null if it is. */
function diffFault(field: Field, kind: Copy['kind'], size: number): string | null {
  if (field('copy.check') !== 'DIFF') return null
  if (kind === 'TREE') return 'A diff is possible for one file, not for an archive'
  if (field('secret') !== '') return 'A diff would reveal the secret'
  return size > longestDiff ? 'A diff is possible for text up to 1 MiB' : null
}

/**
 * A copy from the fields of the form, without `fileId`, which is known after the upload; `file` is undefined
 * if the server has the file. Errors: `invalid` at the fields, for everything the server would refuse after
 * the upload.
 */
export function copyOf(field: Field, file: CopiedFile | undefined): Omit<Copy, 'fileId'> {
  const kind: Copy['kind'] = field('copy.kind') === 'TREE' ? 'TREE' : 'FILE'
  const typed = field('copy.path').trim()
  // Paths of copies have % placeholders, so escape those in the name.
  const name = kind === 'FILE' && typed.endsWith('/') ? (file?.name ?? '').replaceAll('%', '%%') : ''
  const path = typed + name
  const check = field('copy.check')
  const [mode, owner, group] = ['mode', 'owner', 'group'].map((each) => field(`copy.${each}`).trim())
  const faults: [name: string, message: string | null][] = [
    ['copy.path', writtenPathFault(path, kind)],
    ['copy.check', diffFault(field, kind, file?.size ?? 0)],
    ['copy.mode', mode && !/^[0-7]{3,4}$/.test(mode) ? 'Enter 3 or 4 octal digits, like 0640' : null],
  ]
  const found = faults.flatMap(([at, message]): FieldFault[] =>
    message === null ? [] : [{ field: at, message }],
  )
  if (found.length > 0) throw invalid(found)
  return {
    path,
    kind,
    ...(mode && { mode }),
    ...(owner && { owner }),
    ...(group && { group }),
    ...(field('copy.backup') !== '' && { backup: true }),
    ...(check !== '' && { check: check as 'CHANGED' | 'DIFF' }),
  }
}

export function copyFields({ kind, path, check, mode, owner, group, backup }: Copy): Record<string, string> {
  return {
    'copy.kind': kind,
    'copy.path': path,
    'copy.check': check ?? '',
    'copy.mode': mode ?? '',
    'copy.owner': owner ?? '',
    'copy.group': group ?? '',
    'copy.backup': backup === true ? 'true' : '',
  }
}

/** A fetch from the fields of the form. Errors: `invalid` for its path. */
export function fetchOf(field: Field): Fetch {
  const path = field('fetch.path').trim()
  const kind: Fetch['kind'] = field('fetch.kind') === 'TREE' ? 'TREE' : 'FILE'
  const message = writtenPathFault(path, kind)
  if (message !== null) throw invalid([{ field: 'fetch.path', message }])
  return { path, kind, ...(field('fetch.follow') !== '' && { follow: true }) }
}
