import { type Counts, resultStatuses } from '../../core/tasks/task.ts'

/** `2 SUCCESS, 1 FAILED`: what went well first, and always in the same order. */
const order = ['SUCCESS', ...resultStatuses.filter((status) => status !== 'SUCCESS')] as const

export function countsText(counts: Partial<Counts>): string {
  return order
    .flatMap((status) => ((counts[status] ?? 0) > 0 ? [`${counts[status]} ${status}`] : []))
    .join(', ')
}
