import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { TaskResult } from '../../core/task/task.ts'
import { showBytes } from '../../ui/text/bytes.ts'

interface HostCarriedProps {
  task: TaskSummary
  result: TaskResult
  /** Of its file so many bytes have passed; undefined where none have. */
  bytes: number | undefined
}

/** How far the file of a host is, while it is under way. */
export function HostCarried({ task: { copy, stdin }, result, bytes }: HostCarriedProps) {
  const total = copy?.file.size ?? stdin?.size
  if (result.status !== 'RUNNING' || bytes === undefined) return null
  // What follows is the script's own time.
  if (stdin !== null && bytes >= stdin.size) return null
  return (
    <span class="carried">
      {total !== undefined && <progress value={bytes} max={Math.max(total, 1)} aria-hidden="true" />}
      <small>{total === undefined ? showBytes(bytes) : `${showBytes(bytes)} of ${showBytes(total)}`}</small>
    </span>
  )
}
