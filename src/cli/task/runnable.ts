import type { Script } from '../../core/protocol/http/scripts.ts'
import type { Task, TaskCreate } from '../../core/protocol/http/tasks.ts'
import type { DeclaredParam } from '../../core/scripts/front-matter.ts'
import type { ScriptType } from '../../core/scripts/script-form.ts'
import { copyTimeout, upgradeTimeout } from '../../core/tasks/plan.ts'
import { readScriptFile, scriptType } from '../input/script-file.ts'
import type { PlannedScript } from './plan-view.ts'

type Declaring = { readonly text: string; readonly params: readonly DeclaredParam[] }

/** A stored script, or one given as text; `params` are those it declares. */
export type RunnableScript = Declaring &
  (
    | {
        readonly scriptId: number
        readonly name: string
        readonly type: ScriptType
        readonly timeout: number | null
      }
    | { readonly script: NonNullable<TaskCreate['script']> }
  )

type OwnScript = Extract<RunnableScript, { script: unknown }>

/** A copy or fetch of a file or tree; `text` describes it. */
export interface Transfer extends Declaring {
  readonly type: 'COPY' | 'FETCH'
  /** Uploads what the task needs. */
  readonly prepare: (hostCount: number) => Promise<Pick<TaskCreate, 'copy' | 'fetch'>>
  /** Downloads what the task fetched. */
  readonly received?: (task: Task) => Promise<void>
  /** Closes local files, whatever the outcome. */
  readonly close?: () => Promise<void>
}

export type Runnable =
  | RunnableScript
  | Transfer
  | (Declaring & { readonly upgrade: NonNullable<TaskCreate['upgrade']> })

/** Errors: `usage` for invalid settings in its comments. */
export async function storedRunnable({ id, name, content, type, timeout }: Script): Promise<RunnableScript> {
  const { readFrontMatter } = await import('../text/front-matter.ts')
  const { params } = readFrontMatter(content, name)
  return { scriptId: id, name, text: content, params, type, timeout }
}

/** A script from a file or stdin, with the settings in its comments; options override them. */
export async function scriptRunnable(
  content: string,
  path: string,
  fileName: string | undefined,
  type: string | undefined,
  notice: (text: string) => void,
): Promise<OwnScript> {
  const { readFrontMatter } = await import('../text/front-matter.ts')
  const { params, ...said } = readFrontMatter(content, path || 'the script on stdin', notice)
  const name = said.name ?? fileName
  const script = {
    content,
    type: scriptType(type ?? said.type, content, path),
    ...(name === undefined ? {} : { name }),
    ...(said.timeout === undefined ? {} : { timeout: said.timeout }),
  }
  return { script, text: content, params }
}

/** A script from a file. Errors: `usage` if it cannot be read. */
export async function fileRunnable(
  path: string,
  type: string | undefined,
  notice: (text: string) => void,
): Promise<OwnScript> {
  const { text, name } = readScriptFile(path)
  return scriptRunnable(text, path, name, type, notice)
}

export function planned(runnable: Runnable): PlannedScript {
  if ('scriptId' in runnable) return runnable
  if ('upgrade' in runnable)
    return { name: runnable.text, type: 'UPGRADE', timeout: upgradeTimeout, text: '' }
  if ('prepare' in runnable)
    return { name: runnable.text, type: runnable.type, timeout: copyTimeout, text: '' }
  const { type = 'BASH', name = null, timeout = null } = runnable.script
  return { name, type, timeout, text: runnable.text }
}

export async function bodyOf(
  runnable: Runnable,
  hostCount: number,
): Promise<Pick<TaskCreate, 'scriptId' | 'script' | 'upgrade' | 'copy' | 'fetch'>> {
  if ('prepare' in runnable) return runnable.prepare(hostCount)
  if ('scriptId' in runnable) return { scriptId: runnable.scriptId }
  return 'upgrade' in runnable ? { upgrade: runnable.upgrade } : { script: runnable.script }
}
