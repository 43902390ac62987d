import type { Client } from '../../client/client.ts'
import type { ExecutionOptions, GateOption } from '../../core/protocol/http/tasks.ts'
import type { DeclaredParam } from '../../core/scripts/front-matter.ts'
import { type GateFlags, readVerifyTimes } from '../flags/run.ts'
import { meansFile } from '../input/script-file.ts'
import { findScript } from '../names/names.ts'
import { fileRunnable, type RunnableScript, storedRunnable } from './runnable.ts'

/** A script from a file, or the name of a stored one. */
type Meant = RunnableScript | { readonly stored: string }

/** `--verify` and `--rollback`, before stored names are looked up. */
export interface MeantGates {
  readonly verify: Meant | undefined
  readonly rollback: Meant | undefined
  readonly times: ReturnType<typeof readVerifyTimes>
}

export interface FoundGates {
  readonly verify: RunnableScript | undefined
  readonly rollback: RunnableScript | undefined
  readonly options: Pick<ExecutionOptions, 'verify' | 'rollback'>
}

export async function readGates(flags: GateFlags, notice: (text: string) => void): Promise<MeantGates> {
  const meant = async (name: string | undefined): Promise<Meant | undefined> => {
    if (name === undefined) return undefined
    return meansFile(name) ? fileRunnable(name, undefined, notice) : { stored: name }
  }
  const times = readVerifyTimes(flags)
  return { verify: await meant(flags.verify), rollback: await meant(flags.rollback), times }
}

const optionOf = (script: RunnableScript): GateOption =>
  'scriptId' in script ? { scriptId: script.scriptId } : { script: script.script }

/** Errors: `not_found` with the nearest name. */
export async function findGates(
  client: Client,
  { verify, rollback, times }: MeantGates,
): Promise<FoundGates> {
  const found = async (meant: Meant | undefined) =>
    meant && 'stored' in meant
      ? storedRunnable(await findScript(client, meant.stored, 'file or script'))
      : meant
  const [verifying, undoing] = [await found(verify), await found(rollback)]
  return {
    verify: verifying,
    rollback: undoing,
    options: {
      ...(verifying && { verify: { ...optionOf(verifying), ...times } }),
      ...(undoing && { rollback: optionOf(undoing) }),
    },
  }
}

/**
 * Parameters declared by all scripts of a task, the first declaration winning. A script without declarations
 * accepts any, so given ones count as declared.
 */
export function declaredByAll(
  params: readonly DeclaredParam[],
  { verify, rollback }: FoundGates,
  { params: given = {}, secretParams = {} }: ExecutionOptions,
): readonly DeclaredParam[] {
  const more = [...(verify?.params ?? []), ...(rollback?.params ?? [])]
  if (more.length === 0) return params
  const any = params.length > 0 ? [] : Object.keys({ ...given, ...secretParams }).map(anyParam)
  const byName = new Map<string, DeclaredParam>()
  for (const param of [...params, ...more, ...any]) if (!byName.has(param.name)) byName.set(param.name, param)
  return [...byName.values()]
}

const anyParam = (name: string): DeclaredParam => ({
  name,
  required: false,
  secret: false,
  default: null,
  pattern: null,
  description: '',
})
