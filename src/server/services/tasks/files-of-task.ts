import { type FieldFault, invalid } from '../../../core/errors.ts'
import type { ExecutionOptions, TaskCreate } from '../../../core/protocol/http/tasks.ts'
import { copyTimeout } from '../../../core/tasks/plan.ts'
import { writtenPathFault } from '../../../core/tasks/remote-path.ts'
import { wholeFile } from '../../files/files.ts'
import type { Context } from '../context.ts'
import { hostsOf } from '../targets.ts'
import { batchFaults } from './new-task.ts'
import type { NewTask } from './start-task.ts'

/** Bytes of a text that differences are shown of (contract §13). */
const longestDiffed = 1024 * 1024

/** Of a new file that is secret, and whose source has no mode: agents would make it 0644. */
const secretMode = '0600'

/** What is for scripts: somebody who gives it expects it to do something. */
const forScripts = ['params', 'secretParams', 'workDir', 'limits', 'stdin', 'verify', 'rollback'] as const

function pathFaults(field: string, path: string, kind: 'FILE' | 'TREE'): FieldFault[] {
  const message = writtenPathFault(path, kind)
  return message === null ? [] : [{ field, message }]
}

function sharedFaults(input: TaskCreate, what: string): FieldFault[] {
  return [
    ...forScripts
      .filter((field) => input[field] !== undefined)
      .map((field) => ({ field, message: `is for scripts: ${what} takes none` })),
    ...batchFaults(input),
  ]
}

/** The file that a task is to have, as its record holds it. Errors: `invalid`, naming `field`. */
export async function fileOf(
  { store }: Pick<Context, 'store'>,
  fileId: string,
  userId: number,
  field: string,
): Promise<ReturnType<typeof wholeFile>> {
  return wholeFile(await store.get('files', fileId), userId, field)
}

/** The script's stdin, where it is to have one; a bound on its rate needs one. Errors: `invalid`. */
export async function stdinOf(
  context: Pick<Context, 'store'>,
  { stdin, limitRate }: ExecutionOptions,
  userId: number,
): Promise<Pick<NewTask, 'stdin' | 'fileName' | 'hasSecretFile' | 'limitRate'>> {
  if (stdin === undefined) {
    if (limitRate === undefined) return {}
    throw invalid([{ field: 'limitRate', message: 'is for files, and no "stdin" is given: leave it out' }])
  }
  const { order, name, isSecret } = await fileOf(context, stdin.fileId, userId, 'stdin.fileId')
  return { stdin: order, fileName: name, ...(isSecret && { hasSecretFile: true }), limitRate }
}

type CopyCreate = TaskCreate & { copy: NonNullable<TaskCreate['copy']> }

/** What copies a file, and how, without the hosts. Errors: `invalid` with all that is wrong with it. */
export async function checkedCopy(
  context: Pick<Context, 'store'>,
  input: CopyCreate,
  userId: number,
): Promise<Omit<NewTask, 'hostIds' | 'clusterId'>> {
  const { fileId, ...how } = input.copy
  const { path, kind, check } = how
  const faults = [...sharedFaults(input, 'a copy'), ...pathFaults('copy.path', path, kind)]
  if (kind === 'TREE' && check === 'DIFF')
    faults.push({ field: 'copy.check', message: 'DIFF is of one file: give CHANGED for a TREE' })
  if (faults.length > 0) throw invalid(faults)
  const { order, name, isSecret } = await fileOf(context, fileId, userId, 'copy.fileId')
  if (check === 'DIFF' && isSecret)
    throw invalid([{ field: 'copy.check', message: 'DIFF would show what is secret: give CHANGED' }])
  if (check === 'DIFF' && order.size > longestDiffed)
    throw invalid([
      {
        field: 'copy.check',
        message: `DIFF is of text up to ${longestDiffed} bytes, and the file has ${order.size}`,
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

/** The task that copies a file to hosts. Errors: `invalid` as `checkedCopy`, or with what is wrong with the target. */
export async function newCopy(context: Context, input: CopyCreate, userId: number): Promise<NewTask> {
  const checked = await checkedCopy(context, input, userId)
  return { ...checked, ...(await hostsOf(context, input.target, 'target')) }
}

/** The task that fetches a file from hosts. Errors: `invalid`. */
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
