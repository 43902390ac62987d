import { RsmError } from '../../../core/errors.ts'
import type { ExecutionOptions } from '../../../core/protocol/http/tasks.ts'
import type { CopyOrder, FileOfTask, UpgradeOrder } from '../../../core/protocol/messages.ts'
import { firstLine } from '../../../core/scripts/script-form.ts'
import { foldIds } from '../../../core/tasks/id-set.ts'
import type { TaskType } from '../../../core/tasks/task.ts'
import { demandFile, keptFile } from '../../files/files.ts'
import { opaqueId } from '../../storage/ids.ts'
import type { UserCaller } from '../../storage/ports/caller.ts'
import type { Transaction } from '../../storage/ports/store.ts'
import type { ScheduleRecord } from '../../storage/records/schedule.ts'
import type { ExecutionRecord, InstallOrder, TaskGates, TaskRecord } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'
import { demandRunningRoom } from '../text-quota.ts'

/** Milliseconds for which an idempotency key is kept: 24 h (contract §4). */
export const idempotencyLife = 24 * 3600_000
const defaultMaxOutput = 64 * 1024 * 1024
const defaultBatchSize = '25%'
/** Older servers run this instead of the script, because they would ignore its gates. */
const forOlderServers = `echo "this server is too old to verify or roll back what it runs: upgrade it" >&2
exit 126`

export interface NewTask {
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  type: TaskType
  /** Empty if no script runs. */
  content: string
  install?: InstallOrder
  timeout: number
  /** Neither the request nor the script set a timeout. */
  hasDefaultTimeout?: boolean | undefined
  clusterId: number | null
  hostIds: readonly number[]
  retryOf: string | null
  gates?: TaskGates | undefined
  upgrade?: UpgradeOrder | undefined
  copy?: CopyOrder | undefined
  fetch?: TaskRecord['fetch'] | undefined
  stdin?: FileOfTask | undefined
  /** Name of the file of `copy` or `stdin`. */
  fileName?: string | null | undefined
  hasSecretFile?: true | undefined
  limitRate?: number | undefined
  options: ExecutionOptions
}

/** Stands in for the name of a task without a script name. */
function firstLineOf({ install, upgrade, copy, fetch, content }: NewTask): string | null {
  if (copy) return `copy to ${copy.path}`
  if (fetch) return `fetch ${fetch.path}`
  if (install) return 'install the agent'
  return upgrade ? `upgrade to ${upgrade.version}` : firstLine(content)
}

/** Key of a request that runs once, however often it is sent (contract §4). */
export interface Idempotency {
  userId: number
  key: string
  body: unknown
}

type Creator = Pick<UserCaller, 'id' | 'username'>

/** Schedule and slot of a task; the slot is null for a manual run. */
interface Origin {
  schedule: Pick<ScheduleRecord, 'id' | 'ownerId'>
  plannedAt: string | null
}

function taskRecord(
  context: Pick<Context, 'keys' | 'time'>,
  id: string,
  caller: Creator,
  task: NewTask,
): TaskRecord {
  const { options } = task
  const at = context.time()
  const secretParamNames = Object.keys(options.secretParams ?? {})
  const strategy = options.strategy ?? 'PARALLEL'
  return {
    id,
    status: 'RUNNING',
    hostCount: task.hostIds.length,
    counts: null,
    strategy,
    batchSize: strategy === 'ROLLING' ? (options.batchSize ?? defaultBatchSize) : null,
    concurrency: options.concurrency ?? null,
    maxFailures: options.maxFailures ?? null,
    pauseSeconds: options.pauseSeconds ?? 0,
    queueSeconds: options.queueSeconds ?? null,
    scriptId: task.scriptId,
    scriptVersion: task.scriptVersion,
    scriptName: task.scriptName,
    ...(task.scriptName === null && { firstLine: firstLineOf(task) }),
    ...(task.install && { install: task.install }),
    type: task.type,
    content: task.gates ? forOlderServers : task.content,
    ...(task.gates && { gates: { ...task.gates, script: task.content } }),
    params: options.params ?? {},
    secretParams:
      secretParamNames.length > 0
        ? context.keys.seal(JSON.stringify(options.secretParams), `tasks/${id}/secretParams`)
        : null,
    ...(task.upgrade && { upgrade: task.upgrade }),
    ...filesOf(task),
    timeout: task.timeout,
    ...(task.hasDefaultTimeout === true && { hasDefaultTimeout: true }),
    workDir: options.workDir ?? null,
    runAs: options.runAs ?? null,
    limits: options.limits ?? null,
    maxOutputBytes: options.maxOutputBytes ?? defaultMaxOutput,
    clusterId: task.clusterId,
    hostSet: foldIds(task.hostIds),
    secretParamNames,
    retryOf: task.retryOf,
    createdBy: caller.username,
    createdById: caller.id,
    createdAt: at,
    startedAt: at,
    completedAt: null,
    duration: null,
    cancelRequestedAt: null,
    pauseUntil: null,
  }
}

function filesOf({ copy, fetch, stdin, fileName, hasSecretFile, limitRate }: NewTask): Partial<TaskRecord> {
  return {
    ...(copy && { copy }),
    ...(fetch && { fetch }),
    ...(stdin && { stdin }),
    ...(typeof fileName === 'string' && { fileName }),
    ...(hasSecretFile && { hasSecretFile }),
    ...(limitRate !== undefined && { limitRate }),
  }
}

/** Keeps the file of a task that is being written. Errors: `invalid`, or `conflict` for a retry. */
async function demandFileOf(
  tx: Transaction,
  { copy, stdin, retryOf }: NewTask,
  userId: number,
): Promise<void> {
  const fileId = copy?.file.fileId ?? stdin?.fileId
  if (fileId === undefined) return
  if (retryOf === null)
    return demandFile(tx, fileId, userId, copy === undefined ? 'stdin.fileId' : 'copy.fileId')
  if (!(await keptFile(tx, fileId)))
    throw new RsmError(
      'conflict',
      `The file of task ${retryOf} is gone: secret files are deleted when their task ends`,
      {
        hint: 'upload it and copy it again',
      },
    )
}

async function executionRecords(
  store: Context['store'],
  taskId: string,
  { hostIds, type }: NewTask,
): Promise<ExecutionRecord[]> {
  const hosts = await store.getMany('hosts', hostIds)
  return hostIds.map((hostId, position) => ({
    id: `${taskId}/${hostId}`,
    taskId,
    hostId,
    hostname: hosts[position]?.hostname ?? String(hostId),
    position,
    status: 'PENDING',
    dueAt: null,
    sentAt: null,
    ...(type === 'INSTALL' && { overSsh: true }),
    agentStoreId: null,
    named: false,
    cancelRequested: false,
    exitCode: null,
    signal: null,
    startedAt: null,
    completedAt: null,
    duration: null,
    stdoutBytes: 0,
    stderrBytes: 0,
    truncated: false,
    outputComplete: true,
    error: null,
    lateResult: null,
  }))
}

/** Stores tasks, which starts them; the same idempotency key returns the first task. */
export function createStart(context: Context) {
  const { store, engine, keys, agreed, clock } = context

  const recordId = ({ userId, key }: Idempotency) => `${userId}/${key}`
  const hashOf = ({ body }: Idempotency) => keys.digest(JSON.stringify(body))

  /** Task id of an earlier request with this key, or null. @throws RsmError `conflict` if the body differs. */
  async function firstTask(
    reads: Pick<Transaction, 'get'>,
    idempotency: Idempotency,
  ): Promise<string | null> {
    const known = await reads.get('idempotency', recordId(idempotency))
    if (!known || agreed.age()(Date.parse(known.createdAt)) >= idempotencyLife) return null
    if (known.bodyHash !== hashOf(idempotency))
      throw new RsmError('conflict', 'This Idempotency-Key was used for another request; use a new one')
    return known.taskId
  }

  async function recordOf(taskId: string): Promise<TaskRecord> {
    const first = await store.get('tasks', taskId)
    if (!first) throw new RsmError('gone', `Task ${taskId} of this Idempotency-Key is gone`)
    return first
  }

  /** The task that an earlier request with this key started, even if its hosts were removed; null if none. */
  async function replay(idempotency: Idempotency): Promise<TaskRecord | null> {
    const earlier = await firstTask(store, idempotency)
    return earlier === null ? null : recordOf(earlier)
  }

  /** `replayed`: a concurrent identical request started the task. */
  async function start(
    caller: UserCaller,
    task: NewTask,
    idempotency: Idempotency | null,
  ): Promise<{ record: TaskRecord; replayed: boolean }> {
    await demandRunningRoom(context, caller.username, task)
    const record = taskRecord(context, opaqueId(clock.now()), caller, task)
    const executions = await executionRecords(store, record.id, task)
    const earlier = await engine.create(record, executions, async (tx) => {
      if (idempotency) {
        await tx.lock(`idempotency/${recordId(idempotency)}`)
        const known = await firstTask(tx, idempotency)
        if (known !== null) return known
      }
      await demandFileOf(tx, task, caller.id)
      if (!idempotency) return null
      const { id: taskId, createdAt } = record
      tx.put('idempotency', { id: recordId(idempotency), bodyHash: hashOf(idempotency), taskId, createdAt })
      return null
    })
    if (earlier !== null) return { record: await recordOf(earlier), replayed: true }
    return { record, replayed: false }
  }

  /** Starts a task of a schedule in one transaction with the writes of `also`; returns like `Executions.create`. */
  async function startPlanned<T>(
    creator: Creator,
    task: NewTask,
    { schedule, plannedAt }: Origin,
    also: (tx: Transaction, record: TaskRecord) => Promise<T | null>,
  ): Promise<{ record: TaskRecord; other: T | null }> {
    const made = taskRecord(context, opaqueId(clock.now()), creator, task)
    const record = { ...made, scheduleId: schedule.id, plannedAt }
    const executions = await executionRecords(store, record.id, task)
    const other = await engine.create(record, executions, async (tx) => {
      await demandFileOf(tx, task, schedule.ownerId)
      return also(tx, record)
    })
    return { record, other }
  }

  return { start, startPlanned, replay }
}
