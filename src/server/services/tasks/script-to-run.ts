import type { FieldFault } from '../../../core/errors.ts'
import type { TaskCreate } from '../../../core/protocol/http/tasks.ts'
import type { ScriptType } from '../../../core/scripts/script-form.ts'
import { unknownName } from '../../../core/text/nearest.ts'
import type { Context } from '../context.ts'

export interface ScriptToRun {
  /** Of the request: where a fault of its text is shown. */
  field: string
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  type: ScriptType
  content: string
  timeout: number | null
}

/** A stored script, for a request that names it in `field`. */
export async function storedScript(
  { store }: Pick<Context, 'store'>,
  scriptId: number,
  field: string,
): Promise<ScriptToRun | FieldFault> {
  const script = await store.get('scripts', scriptId)
  if (!script) return { field, message: unknownName('script', String(scriptId), []) }
  const { version, name, type, content, timeout } = script
  return { field, scriptId, scriptVersion: version, scriptName: name, type, content, timeout }
}

/** A script that a request brings along, in `field`. */
export function adHocScript(
  { type = 'BASH', content, timeout, name }: NonNullable<TaskCreate['script']>,
  field: string,
): ScriptToRun {
  return {
    field: `${field}.content`,
    scriptId: null,
    scriptVersion: null,
    scriptName: name ?? null,
    type,
    content,
    timeout: timeout ?? null,
  }
}
