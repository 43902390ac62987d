import type { Task } from '../core/protocol/http/tasks.ts'
import type { Api } from './api.ts'

/** What a task ran (contract §3): its own copy, whatever became of the stored script. */
export interface TaskScript
  extends Pick<Task, 'taskId' | 'scriptId' | 'scriptVersion' | 'scriptName' | 'type' | 'params'> {
  readonly content: string
  readonly sha256: string
}

/** The text and the params that ran; `secretParams` are not among them. An unknown task rejects with `not_found`. */
export function readTaskScript(api: Api, taskId: string): Promise<TaskScript> {
  return api.call('GET', `/api/tasks/${encodeURIComponent(taskId)}/script`)
}
