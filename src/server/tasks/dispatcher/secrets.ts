import type { Log } from '../../../disk/log.ts'
import type { Keys } from '../../storage/ports/keys.ts'
import type { TaskRecord } from '../../storage/records/task.ts'

/** The secret parameters of a task. Throws where they can't be opened. */
export function openSecrets(keys: Keys, { id, secretParams }: TaskRecord): Record<string, string> {
  if (secretParams === null) return {}
  return JSON.parse(keys.open(secretParams, `tasks/${id}/secretParams`)) as Record<string, string>
}

/** Why no host can be sent the secret parameters of a task, or null. */
export function sealedFault({ keys, log }: { keys: Keys; log: Log }, task: TaskRecord): string | null {
  try {
    openSecrets(keys, task)
    return null
  } catch (error) {
    log.error({ err: error, taskId: task.id }, 'the secret parameters of a task cannot be opened')
    return 'not started: the secret parameters of the task cannot be opened: the key that they were sealed with is gone, or they are damaged'
  }
}
