import { isFailure, type TaskResult } from '../../../core/tasks/task.ts'
import { silentLines } from '../../task/silent-hosts.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { partsOf } from '../log/viewport.ts'
import type { Span } from '../screen/screen.ts'

const mostRows = 3

function errorOf({ error, rollback }: TaskResult): string {
  const told = error === null ? [] : [sanitizeLine(error)]
  return [...told, ...(rollback?.status === 'SUCCESS' ? ['rolled back'] : [])].join('; ')
}

/** What a host's result says beside its exit code; without a host, for whom the task waits. */
export function noteRows(results: ReadonlyMap<number, TaskResult>, hostId: number, width: number): Span[][] {
  const result = results.get(hostId)
  const lines = result === undefined ? silentLines(results.values()) : [errorOf(result)]
  const isBad = result !== undefined && isFailure(result.status)
  const style = { fg: isBad ? 'red' : 'yellow', bold: true } as const
  const parts = lines.filter((line) => line !== '').flatMap((line) => partsOf(line, Math.max(1, width - 2)))
  return parts.slice(0, mostRows).map((part) => [{ text: `  ${part}`, style }])
}
