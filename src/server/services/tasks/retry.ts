import { invalid, RsmError } from '../../../core/errors.ts'
import type { ExecutionOptions, TaskRetry } from '../../../core/protocol/http/tasks.ts'
import { jointFaults, paramFaults } from '../../../core/scripts/params.ts'
import { runsScript } from '../../../core/tasks/task.ts'
import type { TaskRemains } from '../../storage/ports/outputs.ts'
import type { TaskGates, TaskRecord } from '../../storage/records/task.ts'
import type { Context } from '../context.ts'
import { secretFaults } from './new-task.ts'
import type { NewTask } from './start-task.ts'

/** Options of a retry: those of the task. Secret params are not kept, so the request gives them again. */
function optionsOf(task: TaskRecord, params: TaskRecord['params'], input: TaskRetry): ExecutionOptions {
  const { strategy, pauseSeconds, maxOutputBytes } = task
  const { batchSize, concurrency, maxFailures, queueSeconds, workDir, runAs, limits } = task
  return {
    strategy,
    pauseSeconds,
    maxOutputBytes,
    params,
    ...(batchSize === null ? {} : { batchSize }),
    ...(concurrency === null ? {} : { concurrency }),
    ...(maxFailures === null ? {} : { maxFailures }),
    ...(queueSeconds === null ? {} : { queueSeconds }),
    ...(workDir === null ? {} : { workDir }),
    ...(runAs === null ? {} : { runAs }),
    ...(limits ? { limits } : {}),
    ...input,
  }
}

/** Gates to run again with their texts; null if a text is missing. */
function withTexts(
  { script, verify, rollback }: TaskGates,
  texts: TaskRemains['gates'] = { verify: null, rollback: null },
): TaskGates | null {
  if ((verify && texts.verify === null) || (rollback && texts.rollback === null)) return null
  return {
    script,
    verify: verify && { ...verify, content: texts.verify },
    rollback: rollback && { ...rollback, content: texts.rollback },
  }
}

/** Requires values for exactly the secret params of the task, because they are not kept after its end. */
function checkSecrets(task: TaskRecord, params: TaskRecord['params'], input: TaskRetry): void {
  const names = task.secretParamNames ?? []
  const given = input.secretParams ?? {}
  const faults = [
    ...paramFaults('secretParams', given),
    ...jointFaults(params, given),
    ...names
      .filter((name) => !Object.hasOwn(given, name))
      .map((name) => ({
        field: `secretParams.${name}`,
        message: 'must be given again: secret params are not kept after the end of a task',
      })),
    ...Object.keys(given)
      .filter((name) => !names.includes(name))
      .map((name) => ({
        field: `secretParams.${name}`,
        message: `is not a secret param of task ${task.id}`,
      })),
  ]
  if (faults.length > 0) throw invalid(faults)
}

/** The task that retries unsuccessful hosts. Errors: `conflict` if there are none, `gone`, `invalid`. */
export async function retryOf(context: Context, task: TaskRecord, input: TaskRetry): Promise<NewTask> {
  if (task.status === 'RUNNING')
    throw new RsmError('conflict', `Task ${task.id} still runs; wait for its end, or cancel it first`)
  const unsuccessful = (await context.engine.results(task)).filter(({ status }) => status !== 'SUCCESS')
  if (task.status === 'SUCCESS' || unsuccessful.length === 0)
    throw new RsmError('conflict', `Every host of task ${task.id} succeeded: there is nothing to retry`)
  const unsuccessfulIds = unsuccessful.map(({ hostId }) => hostId)
  const hosts = await context.store.getMany('hosts', unsuccessfulIds)
  const hostIds = hosts.flatMap((host) => host?.id ?? [])
  if (hostIds.length === 0)
    throw new RsmError('conflict', `The hosts on which task ${task.id} did not succeed no longer exist`)
  const { script: content, gates: texts } = await context.engine.texts(task)
  const params = await context.engine.params(task)
  checkSecrets(task, params, input)
  const options = optionsOf(task, params, input)
  const { scriptId, scriptVersion, scriptName, type, timeout, hasDefaultTimeout, clusterId } = task
  const script = { scriptId, scriptVersion, scriptName, type, timeout, hasDefaultTimeout }
  const again = { ...script, clusterId, hostIds, retryOf: task.id }
  const { copy, fetch, stdin, fileName, hasSecretFile, limitRate } = task
  const files = { copy, fetch, stdin, fileName, hasSecretFile, limitRate }
  if (copy || fetch) return { ...again, ...files, content: '', options }
  if (type === 'UPGRADE') return { ...again, content: '', upgrade: task.upgrade, options }
  if (task.install) return { ...again, content: '', install: task.install, options }
  if (!runsScript(type)) throw new RsmError('conflict', `A task of type ${type} cannot be retried`)
  const gates = task.gates && withTexts(task.gates, texts)
  if (content === '' || gates === null)
    throw new RsmError('gone', `The script of task ${task.id} is missing from the server's disk`)
  const faults =
    scriptId === null ? [] : await secretFaults(scriptName ?? 'the script', content, input.secretParams ?? {})
  if (faults.length > 0) throw invalid(faults)
  return { ...again, ...files, content, gates, options }
}
