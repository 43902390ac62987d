import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { TaskResult } from '../../core/tasks/task.ts'

export function nameOf({
  scriptName,
  firstLine,
  type,
}: Pick<TaskSummary, 'scriptName' | 'firstLine' | 'type'>): string {
  return scriptName ?? firstLine ?? `${type.toLowerCase()} command`
}

/** `3 success, 1 failed`. */
export function countsSaid(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${status.toLowerCase()}`)
    .join(', ')
}

/** How a host's part ended, beside its status. */
export function endSaid({ status, exitCode, signal, error }: TaskResult): string {
  if (error !== null) return error
  if (signal !== null) return `ended by ${signal}`
  if (status === 'TIMEOUT' || exitCode === null) return ''
  return `exit ${exitCode}`
}
