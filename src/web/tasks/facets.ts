import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { GateStatus } from '../../core/tasks/gates.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { isDryRun } from './changed.ts'
import { hasGates } from './phases.ts'

/** A kind of hosts that people look for; `isBad` of those that need somebody. */
export interface Facet {
  readonly name: string
  readonly isBad?: boolean
  readonly fits: (result: TaskResult) => boolean
}

const isFailed = (status: GateStatus | undefined) => status === 'FAILED' || status === 'TIMEOUT'

const gateFacets: readonly Facet[] = [
  { name: 'verifying', fits: ({ phase }) => phase === 'VERIFY' },
  { name: 'rolling back', fits: ({ phase }) => phase === 'ROLLBACK' },
  { name: 'verify failed', isBad: true, fits: ({ verify }) => isFailed(verify?.status) },
  { name: 'rollback failed', isBad: true, fits: ({ rollback }) => isFailed(rollback?.status) },
  { name: 'rolled back', fits: ({ rollback }) => rollback?.status === 'SUCCESS' },
]

const copyFacets: readonly Facet[] = [
  { name: 'changed', fits: ({ changed }) => changed === true },
  { name: 'unchanged', fits: ({ changed }) => changed === false },
]
const dryFacets: readonly Facet[] = [
  { name: 'would change', fits: ({ changed }) => changed === true },
  { name: 'unchanged', fits: ({ changed }) => changed === false },
]

const fetchFacets: readonly Facet[] = [{ name: 'fetched', fits: ({ status }) => status === 'SUCCESS' }]

/** By which hosts of a task are told apart beside their status. */
export function facetsOf(
  task: Pick<TaskSummary, 'copy' | 'fetch' | 'verify' | 'rollback'>,
): readonly Facet[] {
  if (hasGates(task)) return gateFacets
  if (task.fetch !== null) return fetchFacets
  if (task.copy === null) return []
  return isDryRun(task) ? dryFacets : copyFacets
}
