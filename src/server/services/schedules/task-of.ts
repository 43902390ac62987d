import { RsmError } from '../../../core/errors.ts'
import type { ExecutionOptions } from '../../../core/protocol/http/tasks.ts'
import { demandFile } from '../../files/files.ts'
import type { Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'
import type { Context } from '../context.ts'
import { hostsOf } from '../targets.ts'
import { checkedCopy, stdinOf } from '../tasks/files-of-task.ts'
import { adHocScript, checkedRun, type ScriptToRun, storedScript } from '../tasks/new-task.ts'
import type { NewTask } from '../tasks/start-task.ts'
import { demandUnchangedStored, demandUnchangedTask } from './rights.ts'

const sealedFor = (scheduleId: number) => `schedules/${scheduleId}/secretParams`

export type Secrets = Readonly<Record<string, string>>

export function sealSecrets({ keys }: Pick<Context, 'keys'>, scheduleId: number, secrets: Secrets) {
  const names = Object.keys(secrets)
  const sealed = names.length === 0 ? null : keys.seal(JSON.stringify(secrets), sealedFor(scheduleId))
  return { secretParams: sealed, secretParamNames: names }
}

/** @throws RsmError `gone` if they were sealed with another key. */
export function openSecrets(
  { keys }: Pick<Context, 'keys'>,
  { id, secretParams }: Pick<ScheduleRecord, 'id' | 'secretParams'>,
): Secrets {
  if (secretParams === null) return {}
  try {
    return JSON.parse(keys.open(secretParams, sealedFor(id))) as Secrets
  } catch (cause) {
    const message = 'its secret params were sealed with another key, so they must be given again'
    throw new RsmError('gone', message, { cause })
  }
}

async function scriptOf(
  context: Context,
  { scriptId, script }: Pick<ScheduleRecord, 'scriptId' | 'script'>,
): Promise<ScriptToRun | Awaited<ReturnType<typeof storedScript>>> {
  return script ? adHocScript(script, 'script') : storedScript(context, scriptId ?? 0, 'scriptId')
}

function optionsOf(
  context: Pick<Context, 'keys'>,
  record: Pick<ScheduleRecord, 'id' | 'options' | 'secretParams'>,
): ExecutionOptions {
  const secretParams = openSecrets(context, record)
  return Object.keys(secretParams).length === 0 ? record.options : { ...record.options, secretParams }
}

type Ordered = Pick<ScheduleRecord, 'scriptId' | 'script' | 'copy' | 'target'>

/** The task of a schedule, without its hosts. Rejects with `invalid`, listing all faults. */
export async function checkedOrder(
  context: Context,
  ordered: Ordered,
  options: ExecutionOptions,
  ownerId: number,
): Promise<Omit<NewTask, 'hostIds' | 'clusterId'>> {
  const { copy, target } = ordered
  if (copy === null) {
    const checked = await checkedRun(context, await scriptOf(context, ordered), options)
    return { ...checked, ...(await stdinOf(context, options, ownerId)) }
  }
  const { params = {}, ...others } = options
  const given = Object.keys(params).length === 0 ? others : options
  return checkedCopy(context, { ...given, copy, target }, ownerId)
}

/** The task that a schedule starts now. Errors: `invalid`, or `conflict` if a script with secrets changed. */
export async function taskOf(context: Context, record: ScheduleRecord): Promise<NewTask> {
  await demandUnchangedStored(context.store, record)
  const checked = await checkedOrder(context, record, optionsOf(context, record), record.ownerId)
  demandUnchangedTask(record, checked)
  // A slot may come just after a server start, so include hosts that have yet to link.
  return { ...checked, ...(await hostsOf(context, record.target, 'target', true)) }
}

/** The file that a schedule refers to and keeps, with the field that names it; null without a file. */
function fileOf({ copy, options }: Pick<ScheduleRecord, 'copy' | 'options'>) {
  if (copy !== null) return { fileId: copy.fileId, field: 'copy.fileId' }
  return options.stdin ? { fileId: options.stdin.fileId, field: 'stdin.fileId' } : null
}

/** Keeps the file of a schedule that is being written. Errors: `invalid` if its owner has no such file. */
export async function demandFileOf(tx: Transaction, record: ScheduleRecord): Promise<void> {
  const file = fileOf(record)
  if (file) await demandFile(tx, file.fileId, record.ownerId, file.field)
}
