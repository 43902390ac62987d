import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { ExecutionOptions, TaskCreate } from '../../../core/protocol/http/tasks.ts'
import { copyTimeout } from '../../../core/tasks/plan.ts'
import { writtenPathFault } from '../../../core/tasks/remote-path.ts'
import { wholeFile } from '../../files/files.ts'
import type { Context } from '../context.ts'
import { hostsOf } from '../targets.ts'
import { batchFaults } from './new-task.ts'
import type { NewTask } from './start-task.ts'

/** Largest file in bytes for which differences are shown (contract §13). */
const longestDiffed = 1024 * 1024

/** Mode of a new secret file whose source has no mode: the agent's default is 0644. */
const secretMode = '0600'

/** Script-only options: reject them rather than ignore them. */
const forScripts = ['params', 'secretParams', 'workDir', 'limits', 'stdin', 'verify', 'rollback'] as const

function pathFaults(field: string, path: string, kind: 'FILE' | 'TREE'): FieldFault[] {
  const message = writtenPathFault(path, kind)
  return message === null ? [] : [{ field, message }]
}

function sharedFaults(input: TaskCreate, what: string): FieldFault[] {
  return [
    ...forScripts
      .filter((field) => input[field] !== undefined)
      .map((field) => ({ field, message: `is for scripts only, not for ${what}` })),
    ...batchFaults(input),
  ]
}

/** The file of a task, as its record holds it. Errors: `invalid`, naming `field`. */
export async function fileOf(
  { store }: Pick<Context, 'store'>,
  fileId: string,
  userId: number,
  field: string,
): Promise<ReturnType<typeof wholeFile>> {
  return wholeFile(await store.get('files', fileId), userId, field)
}

/** The script's stdin, if any; `limitRate` requires one. Errors: `invalid`. */
export async function stdinOf(
  context: Pick<Context, 'store'>,
  { stdin, limitRate }: ExecutionOptions,
  userId: number,
): Promise<Pick<NewTask, 'stdin' | 'fileName' | 'hasSecretFile' | 'limitRate'>> {
  if (stdin === undefined) {
    if (limitRate === undefined) return {}
    throw invalid([{ field: 'limitRate', message: 'limits files, and there is no "stdin": leave it out' }])
  }
  const { order, name, isSecret } = await fileOf(context, stdin.fileId, userId, 'stdin.fileId')
  return { stdin: order, fileName: name, ...(isSecret && { hasSecretFile: true }), limitRate }
}

type CopyCreate = TaskCreate & { copy: NonNullable<TaskCreate['copy']> }

/** The task that copies a file, without its hosts. Errors: `invalid`, listing all faults. */
export async function checkedCopy(
  context: Pick<Context, 'store'>,
  input: CopyCreate,
  userId: number,
): Promise<Omit<NewTask, 'hostIds' | 'clusterId'>> {
  const { fileId, ...how } = input.copy
  const { path, kind, check } = how
  const faults = [...sharedFaults(input, 'a copy'), ...pathFaults('copy.path', path, kind)]
  if (kind === 'TREE' && check === 'DIFF')
    faults.push({ field: 'copy.check', message: 'DIFF is for single files: use CHANGED for a TREE' })
  if (faults.length > 0) throw invalid(faults)
  const { order, name, isSecret } = await fileOf(context, fileId, userId, 'copy.fileId')
  if (check === 'DIFF' && isSecret)
    throw invalid([{ field: 'copy.check', message: 'DIFF would show a secret file: use CHANGED' }])
  if (check === 'DIFF' && order.size > longestDiffed)
    throw invalid([
      {
        field: 'copy.check',
        message: `DIFF is for text up to ${longestDiffed} bytes; the file has ${order.size}`,
      },
    ])
  return {
    ...withoutScript,
    type: 'COPY',
    timeout: input.timeout ?? copyTimeout,
    hasDefaultTimeout: input.timeout === undefined,
    copy: { ...(isSecret && kind === 'FILE' && { sourceMode: secretMode }), ...how, file: order },
    fileName: name,
    ...(isSecret && { hasSecretFile: true }),
    limitRate: input.limitRate,
    options: optionsOf(input),
  }
}

/** The task that copies a file to hosts. Errors: `invalid`, also for the target. */
export async function newCopy(context: Context, input: CopyCreate, userId: number): Promise<NewTask> {
  const checked = await checkedCopy(context, input, userId)
  return { ...checked, ...(await hostsOf(context, input.target, 'target')) }
}

export async function newFetch(
  context: Context,
  input: TaskCreate & { fetch: NonNullable<TaskCreate['fetch']> },
): Promise<NewTask> {
  const { fetch } = input
  const faults = [...sharedFaults(input, 'a fetch'), ...pathFaults('fetch.path', fetch.path, fetch.kind)]
  if (faults.length > 0) throw invalid(faults)
  const hosts = await hostsOf(context, input.target, 'target')
  return {
    ...withoutScript,
    type: 'FETCH',
    ...hosts,
    timeout: input.timeout ?? copyTimeout,
    hasDefaultTimeout: input.timeout === undefined,
    fetch,
    limitRate: input.limitRate,
    options: optionsOf(input),
  }
}

const withoutScript = {
  scriptId: null,
  scriptVersion: null,
  scriptName: null,
  content: '',
  retryOf: null,
} as const

function optionsOf(input: TaskCreate): ExecutionOptions {
  const { target: _, scriptId: _id, script: _script, copy: _copy, fetch: _fetch, ...options } = input
  return options
}
