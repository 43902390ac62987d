import { invalid, RsmError } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/clusters.ts'
import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { TaskFile } from '../../core/protocol/http/files.ts'
import type { ExecutionOptions, Started, Task } from '../../core/protocol/http/tasks.ts'
import type { TaskService } from '../../core/services.ts'
import { foldIds } from '../../core/tasks/id-set.ts'
import { expandPath } from '../../core/tasks/remote-path.ts'
import { runsScript } from '../../core/tasks/task.ts'
import { sha256 } from '../../disk/digest.ts'
import type { Log } from '../../disk/log.ts'
import { fetchedId } from '../files/files.ts'
import { pageOf, storePage, windowOf } from '../storage/paging.ts'
import { demand, type UserCaller } from '../storage/ports/caller.ts'
import type { Store } from '../storage/ports/store.ts'
import type { GateScript, TaskRecord } from '../storage/records/task.ts'
import { type Context, type ForCallers, notFound } from './context.ts'
import { readLogs } from './logs/logs.ts'
import { hostsOf } from './targets.ts'
import { demandInstall, installTask, newUpgrade } from './tasks/agent-tasks.ts'
import { newCopy, newFetch, stdinOf } from './tasks/files-of-task.ts'
import { adHocScript, checkedRun, storedScript } from './tasks/new-task.ts'
import { retryOf } from './tasks/retry.ts'
import { createStart, type Idempotency, type NewTask } from './tasks/start-task.ts'

export interface Starter extends UserCaller {
  /** Called once a task is durable, before waiting for its end; `replayed`: an earlier request started it. */
  started?: ((taskId: string, replayed: boolean) => Promise<void>) | undefined
}

export function createTasks(context: Context): ForCallers<TaskService, Starter> {
  const { store, engine, ownership, shared } = context
  const { start, replay } = createStart(context)

  /** Starts the task of `prepare`, unless an earlier request with the same key started it. */
  async function run(
    caller: Starter,
    options: { async?: boolean },
    idempotency: Idempotency | null,
    prepare: () => Promise<NewTask>,
  ): Promise<Started | Task> {
    const earlier = idempotency && (await replay(idempotency))
    const begun = earlier
      ? { record: earlier, replayed: true }
      : await start(caller, await prepare(), idempotency)
    return answer(caller, begun, options)
  }

  /** The task of a request. Rejects with `invalid`; faults of the target name `targetField`. */
  async function ofScript(
    { id }: Starter,
    script: Parameters<typeof checkedRun>[1],
    { target, targetField, options }: { target: Target; targetField: string; options: ExecutionOptions },
  ): Promise<NewTask> {
    const checked = await checkedRun(context, script, options)
    const hosts = await hostsOf(context, target, targetField)
    return { ...checked, ...hosts, ...(await stdinOf(context, options, id)) }
  }

  async function answer(
    { started }: Starter,
    { record, replayed }: { record: TaskRecord; replayed: boolean },
    options: { async?: boolean },
  ): Promise<Started | Task> {
    await started?.(record.id, replayed)
    if (options.async !== false) {
      const { id: taskId, hostCount, createdAt } = record
      const age = Math.max(0, Math.round((context.clock.now() - Date.parse(createdAt)) / 1000))
      const { status } = await engine.summary(record)
      return { taskId, status, hostCount, replayedAfterSeconds: replayed ? age : null }
    }
    await engine.finished(record.id)
    return toApi((await store.get('tasks', record.id)) ?? record)
  }

  async function toApi(task: TaskRecord, query?: { page?: number; size?: number }): Promise<Task> {
    const isNarrowed = query?.page !== undefined || query?.size !== undefined
    const shown = await engine.details(task, isNarrowed ? windowOf(query) : undefined)
    const params = await engine.params(task)
    const server = shown.status === 'RUNNING' ? await ownerOf(task) : null
    return { ...shown, params, server }
  }

  async function ownerOf({ id }: TaskRecord): Promise<string | null> {
    return shared === null ? null : ((await ownership.owner(id))?.name ?? null)
  }

  async function get(taskId: string): Promise<TaskRecord> {
    const task = await store.get('tasks', taskId)
    if (!task) throw notFound('task', taskId)
    return task
  }

  return {
    async list(_, query) {
      const { status, scriptId, clusterId, hostId, scheduleId, createdBy } = query
      const equals = { status, scriptId, clusterId, scheduleId, createdBy }
      const where = { equals, has: { hostSet: hostId === undefined ? undefined : [hostId] } }
      return storePage(store, 'tasks', query, { where, order: 'desc' }, (tasks) =>
        Promise.all(tasks.map((task) => engine.summary(task))),
      )
    },
    get: async (_, taskId, query) => toApi(await get(taskId), query),
    async create(caller, input, idempotencyKey) {
      const { scriptId, script, install, target, copy, fetch, ...options } = input
      const given = [scriptId, script, install, input.upgrade, copy, fetch].filter(
        (each) => each !== undefined,
      )
      if (given.length !== 1)
        throw invalid([
          {
            field: 'scriptId',
            message: 'give exactly one of scriptId, script, copy, fetch, install and upgrade',
          },
        ])
      const key = keyed(caller, idempotencyKey, ['tasks', input])
      if (copy !== undefined)
        return run(caller, options, key, () => newCopy(context, { ...input, copy }, caller.id))
      if (fetch !== undefined) return run(caller, options, key, () => newFetch(context, { ...input, fetch }))
      if (install !== undefined) {
        demandInstall(caller)
        return run(caller, options, key, () =>
          installTask(context, { install, field: 'install.', target, options }),
        )
      }
      if (input.upgrade !== undefined) {
        demand(caller, 'administer')
        return run(caller, input, key, () => newUpgrade(context, input))
      }
      const adHoc = script && adHocScript(script, 'script')
      return run(caller, options, key, async () => {
        const toRun = adHoc ?? (await storedScript(context, scriptId ?? 0, 'scriptId'))
        return ofScript(caller, toRun, { target, targetField: 'target', options })
      })
    },
    async executeScript(caller, scriptId, input, idempotencyKey) {
      const { hostIds, ...options } = input
      return run(caller, options, keyed(caller, idempotencyKey, ['script', scriptId, input]), async () => {
        const script = await storedScript(context, scriptId, 'scriptId')
        return ofScript(caller, script, { target: { hostIds }, targetField: '', options })
      })
    },
    async executeCluster(caller, clusterId, input, idempotencyKey) {
      const { scriptId, ...options } = input
      return run(caller, options, keyed(caller, idempotencyKey, ['cluster', clusterId, input]), async () => {
        const script = await storedScript(context, scriptId, 'scriptId')
        return ofScript(caller, script, { target: { clusterId }, targetField: '', options })
      })
    },
    async installAgent(caller, hostId, input, idempotencyKey) {
      demandInstall(caller)
      const { async = true, ...install } = input
      return run(caller, { async }, keyed(caller, idempotencyKey, ['install', hostId, input]), () =>
        installTask(context, { install, field: '', target: { hostIds: [hostId] }, options: {} }),
      )
    },
    async cancel(_, taskId) {
      await get(taskId)
      await engine.cancel(taskId)
      return toApi(await get(taskId))
    },
    async retry(caller, taskId, input, idempotencyKey) {
      const previous = await get(taskId)
      if (previous.type === 'UPGRADE') demand(caller, 'administer')
      if (previous.type === 'INSTALL') demandInstall(caller)
      return run(caller, input, keyed(caller, idempotencyKey, ['retry', taskId, input]), async () =>
        retryOf(context, await get(taskId), input),
      )
    },
    async script(_, taskId) {
      const task = await get(taskId)
      const { scriptId, scriptVersion, scriptName, type, secretParamNames = [] } = task
      if (!runsScript(type))
        throw new RsmError('not_found', `Task ${taskId} runs no script: its type is ${type}`)
      const { script: content, gates } = await engine.texts(task)
      const params = await engine.params(task)
      const gateOf = (gate: GateScript | null | undefined, text: string | null | undefined) =>
        gate ? { type: gate.type, content: text ?? '', sha256: sha256(text ?? '') } : null
      return {
        taskId,
        scriptId,
        scriptVersion,
        scriptName,
        type,
        content,
        sha256: sha256(content),
        params,
        secretParams: secretParamNames,
        verify: gateOf(task.gates?.verify, gates?.verify),
        rollback: gateOf(task.gates?.rollback, gates?.rollback),
      }
    },
    files: async (_, taskId, query) => fetchedBy(context, await get(taskId), query),
    async logs(_, taskId, query) {
      return readLogs(context, await get(taskId), query)
    },
  }
}

const keyPattern = /^[\x21-\x7e]{1,255}$/

function keyed({ id: userId }: Starter, key: string | undefined, body: unknown): Idempotency | null {
  if (key === undefined) return null
  if (!keyPattern.test(key))
    throw new RsmError('invalid', 'The header Idempotency-Key must be 1 to 255 visible ASCII characters')
  return { userId, key, body }
}

/** Lists files that a task fetches, in the order of its plan. Errors: `not_found` if it fetches none. */
async function fetchedBy(
  { store, engine }: Pick<Context, 'store' | 'engine'>,
  task: TaskRecord,
  query: PageQuery,
): Promise<Page<TaskFile>> {
  const { id, type, fetch, hostCount } = task
  if (!fetch) throw new RsmError('not_found', `Task ${id} fetches no files: its type is ${type}`)
  const shown = await engine.results(task, windowOf(query))
  const files = await store.getMany(
    'files',
    shown.map(({ hostId }) => fetchedId(id, hostId)),
  )
  const content = shown.map(({ hostId, hostname }, at) => {
    const file = files[at]
    const { size = null, sha256 = null } = file?.isComplete ? file : {}
    return {
      hostId,
      hostname,
      path: expandPath(fetch.path, hostname) ?? fetch.path,
      kind: fetch.kind,
      size,
      sha256,
    }
  })
  return pageOf(content, hostCount, query)
}

/** Tasks per transaction. */
const tasksAtOnce = 500

interface HostSetParts {
  readonly store: Store
  readonly engine: { results(task: TaskRecord): Promise<readonly { hostId: number }[]> }
  readonly log: Log
}

/**
 * Adds host sets to tasks of older servers, from their results, so that searches by host find them. Tasks without
 * results stay as they are. A full disk must not prevent the start: the next one retries.
 */
export async function fillHostSets({ store, engine, log }: HostSetParts): Promise<void> {
  const { items } = await store.query('tasks', { where: { equals: { hostSet: '' } } })
  try {
    for (let from = 0; from < items.length; from += tasksAtOnce) {
      const sets = new Map<string, string>()
      for (const task of items.slice(from, from + tasksAtOnce))
        sets.set(task.id, foldIds((await engine.results(task)).map(({ hostId }) => hostId)))
      await store.transact(async (tx) => {
        for (const task of await tx.getMany('tasks', [...sets.keys()])) {
          const hostSet = task && sets.get(task.id)
          if (hostSet) tx.put('tasks', { ...task, hostSet })
        }
      })
    }
  } catch (error) {
    log.warn({ err: error }, 'searches by host miss tasks of older servers until the next start')
  }
}
