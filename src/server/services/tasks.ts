import { type FieldFault, invalid, RsmError } from '../../core/errors.ts'
import type { ScriptType } from '../../core/protocol/http/scripts.ts'
import type { ExecutionOptions, Started, Target, Task } from '../../core/protocol/http/tasks.ts'
import { jointFaults, paramFaults } from '../../core/script/params.ts'
import { parseSelector } from '../../core/selector/parse.ts'
import { whyEmpty } from '../../core/selector/why-empty.ts'
import type { TaskService } from '../../core/services.ts'
import { hasId } from '../../core/task/id-set.ts'
import { defaultTimeout } from '../../core/task/plan.ts'
import { unknownName } from '../../core/text/nearest.ts'
import type { UserCaller } from '../access/caller.ts'
import { sha256 } from '../digest.ts'
import type { TaskRecord } from '../seams/records.ts'
import { inTurns } from '../slices.ts'
import { unknownHosts } from './clusters.ts'
import { type Context, notFound } from './context.ts'
import { readLogs } from './logs/logs.ts'
import { pageOf, slicePage, storePage } from './paging.ts'
import { contentFaults } from './scripts.ts'
import { declaredOf } from './tasks/declared.ts'
import { retryOf } from './tasks/retry.ts'
import { createStart, type Idempotency, type NewTask } from './tasks/start-task.ts'

interface ScriptToRun {
  /** Of the request: where a fault of its text is shown. */
  field: string
  scriptId: number | null
  scriptVersion: number | null
  scriptName: string | null
  type: ScriptType
  content: string
  timeout: number | null
}

/** What would be without effect: somebody relies on it, and the whole fleet would run at once. */
function batchFaults({ strategy = 'PARALLEL', batchSize, pauseSeconds = 0 }: ExecutionOptions): FieldFault[] {
  const faults: FieldFault[] = []
  if (batchSize !== undefined && strategy !== 'ROLLING')
    faults.push({
      field: 'batchSize',
      message: `is for ROLLING, not ${strategy}: give "strategy": "ROLLING" with it`,
    })
  if (pauseSeconds > 0 && strategy === 'PARALLEL')
    faults.push({
      field: 'pauseSeconds',
      message:
        'is between batches, and PARALLEL has one only: give "strategy": "ROLLING" or "SEQUENTIAL" with it',
    })
  return faults
}

/** Is told of a task that is durable, before its end is waited for; `replayed` when an earlier request started it. */
export type NoteStarted = (taskId: string, replayed: boolean) => Promise<void>

export function createTasks(context: Context, caller: UserCaller, started?: NoteStarted): TaskService {
  const { store, engine, fleet } = context
  const { start, replay } = createStart(context, caller)

  async function storedScript(scriptId: number, field: string): Promise<ScriptToRun | FieldFault> {
    const script = await store.get('scripts', scriptId)
    if (!script) return { field, message: unknownName('script', String(scriptId), []) }
    const { version, name, type, content, timeout } = script
    return { field, scriptId, scriptVersion: version, scriptName: name, type, content, timeout }
  }

  /** Hosts in the order of the plan, each once; faults carry `prefix`. */
  async function resolveTarget(
    target: Target,
    prefix: string,
  ): Promise<{ hostIds: number[]; clusterId: number | null }> {
    const { hostIds, clusterId, selector } = target
    const given = [hostIds, clusterId, selector].filter((one) => one !== undefined).length
    if (given !== 1)
      throw invalid([
        { field: prefix || 'target', message: 'give exactly one of hostIds, clusterId and selector' },
      ])
    const dot = prefix ? `${prefix}.` : ''
    if (selector !== undefined)
      return { hostIds: await fleet.select(selector, `${dot}selector`), clusterId: null }
    if (hostIds !== undefined) {
      const faults = await unknownHosts(context, hostIds, `${dot}hostIds`)
      if (faults.length > 0) throw invalid(faults)
      return { hostIds: [...new Set(hostIds)], clusterId: null }
    }
    const id = clusterId ?? 0
    const cluster = await store.get('clusters', id)
    if (!cluster)
      throw invalid([{ field: `${dot}clusterId`, message: unknownName('cluster', String(id), []) }])
    return { hostIds: await fleet.targets(cluster, `${dot}clusterId`), clusterId: id }
  }

  /** Why a target that is good names no host, where that can be said. */
  async function whyNone({ clusterId, selector }: Target): Promise<string | null> {
    if (selector !== undefined) return inTurns(whyEmpty(parseSelector(selector), await fleet.directory()))
    const cluster = clusterId === undefined ? undefined : await store.get('clusters', clusterId)
    return cluster ? `cluster ${cluster.name} has no hosts` : null
  }

  async function run(
    script: ScriptToRun | FieldFault,
    target: Target,
    targetField: string,
    options: ExecutionOptions,
    idempotency: Idempotency | null,
  ): Promise<Started | Task> {
    const earlier = idempotency && (await replay(idempotency))
    if (earlier) return answer({ record: earlier, replayed: true }, options)
    const { params = {}, secretParams = {} } = options
    const faults = [
      ...paramFaults('params', params),
      ...paramFaults('secretParams', secretParams),
      ...jointFaults(params, secretParams),
      ...batchFaults(options),
    ]
    faults.push(
      ...('message' in script ? [script] : contentFaults(script.type, script.content, script.field)),
    )
    if (faults.length > 0 || 'message' in script) throw invalid(faults)
    const stored = script.scriptId === null ? null : script
    const declared =
      stored === null ? null : await declaredOf(stored.scriptName ?? 'the script', stored.content, options)
    if (declared !== null && declared.faults.length > 0) throw invalid(declared.faults)
    const { hostIds, clusterId } = await resolveTarget(target, targetField)
    if (hostIds.length === 0) {
      const field = target.hostIds
        ? [targetField, 'hostIds'].filter(Boolean).join('.')
        : targetField || 'clusterId'
      const why = await whyNone(target)
      throw invalid([{ field, message: why === null ? 'names no host' : `names no host: ${why}` }])
    }
    const timeout = options.timeout ?? script.timeout ?? defaultTimeout
    const { field: _, ...toRun } = script
    const given = declared === null ? options : { ...options, params: declared.params }
    const task: NewTask = { ...toRun, timeout, clusterId, hostIds, retryOf: null, options: given }
    return answer(await start(task, idempotency), options)
  }

  async function answer(
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
    return show((await store.get('tasks', record.id)) ?? record)
  }

  async function show(task: TaskRecord, query?: { page?: number; size?: number }): Promise<Task> {
    const results = await engine.results(task)
    const narrowed =
      query?.page === undefined && query?.size === undefined ? results : slicePage(results, query)
    return { ...(await engine.summary(task)), results: narrowed }
  }

  async function get(taskId: string): Promise<TaskRecord> {
    const task = await store.get('tasks', taskId)
    if (!task) throw notFound('task', taskId)
    return task
  }

  async function ranOn(task: TaskRecord, hostId: number): Promise<boolean> {
    if (task.hostSet !== undefined) return hasId(task.hostSet, hostId)
    return (await engine.results(task)).some((result) => result.hostId === hostId)
  }

  return {
    async list(query) {
      const { status, scriptId, clusterId, hostId, createdBy } = query
      const equals = { status, scriptId, clusterId, createdBy }
      const summaries = (tasks: TaskRecord[]) => Promise.all(tasks.map((task) => engine.summary(task)))
      const older = { where: { equals: { ...equals, hostSet: '' } }, limit: 0 }
      if (hostId === undefined || (await store.query('tasks', older)).total === 0) {
        const where = { equals, has: { hostSet: hostId === undefined ? undefined : [hostId] } }
        return storePage(store, 'tasks', query, { where, order: 'desc' }, summaries)
      }
      // Tasks of older servers don't say where they ran; their results do.
      const ofHost: TaskRecord[] = []
      for (const task of (await store.query('tasks', { where: { equals }, order: 'desc' })).items)
        if (await ranOn(task, hostId)) ofHost.push(task)
      return pageOf(await summaries(slicePage(ofHost, query)), ofHost.length, query)
    },
    get: async (taskId, query) => show(await get(taskId), query),
    async create(input, idempotencyKey) {
      const { scriptId, script, target, ...options } = input
      if ((scriptId === undefined) === (script === undefined))
        throw invalid([{ field: 'scriptId', message: 'give exactly one of scriptId and script' }])
      const adHoc = script && {
        field: 'script.content',
        scriptId: null,
        scriptVersion: null,
        scriptName: script.name ?? null,
        type: script.type ?? 'BASH',
        content: script.content,
        timeout: script.timeout ?? null,
      }
      const toRun = adHoc ?? (await storedScript(scriptId ?? 0, 'scriptId'))
      return run(toRun, target, 'target', options, keyed(idempotencyKey, ['tasks', input]))
    },
    async executeScript(scriptId, input, idempotencyKey) {
      const { hostIds, ...options } = input
      const script = await storedScript(scriptId, 'scriptId')
      return run(script, { hostIds }, '', options, keyed(idempotencyKey, ['script', scriptId, input]))
    },
    async executeCluster(clusterId, input, idempotencyKey) {
      const { scriptId, ...options } = input
      const script = await storedScript(scriptId, 'scriptId')
      return run(script, { clusterId }, '', options, keyed(idempotencyKey, ['cluster', clusterId, input]))
    },
    async cancel(taskId) {
      await get(taskId)
      await engine.cancel(taskId)
      return show(await get(taskId))
    },
    async retry(taskId, input, idempotencyKey) {
      const idempotency = keyed(idempotencyKey, ['retry', taskId, input])
      const earlier = idempotency && (await replay(idempotency))
      if (earlier) return answer({ record: earlier, replayed: true }, input)
      return answer(await start(await retryOf(context, await get(taskId), input), idempotency), input)
    },
    async script(taskId) {
      const task = await get(taskId)
      const content = await engine.script(task)
      const { scriptId, scriptVersion, scriptName, type, params, secretParamNames = [] } = task
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
      }
    },
    async logs(taskId, query) {
      return readLogs(context, await get(taskId), query)
    },
  }
}

const keyPattern = /^[\x21-\x7e]{1,255}$/

function keyed(key: string | undefined, body: unknown): Idempotency | null {
  if (key === undefined) return null
  if (!keyPattern.test(key))
    throw new RsmError('invalid', 'The header Idempotency-Key has to be 1 to 255 visible ASCII characters')
  return { key, body }
}
