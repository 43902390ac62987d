import { actionOf, targetOf } from '../../cli/schedules/view.ts'
import { counted } from '../../cli/text/counted.ts'
import type { Cluster } from '../../core/protocol/http/clusters.ts'
import type { ScheduleSummary } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { Target } from '../../core/protocol/http/tasks.ts'
import { call } from '../api.ts'

/** The name of what it runs. */
export function ranSaid(schedule: ScheduleSummary, scripts: readonly ScriptSummary[] = []): string {
  return scripts.find(({ id }) => id === schedule.scriptId)?.name ?? actionOf(schedule)
}

/** Its targets in a few words. */
export function targetSaid(schedule: Pick<ScheduleSummary, 'target'>): string {
  const { hostIds } = schedule.target
  return hostIds === undefined ? targetOf(schedule) : counted(hostIds.length, 'host')
}

/** Its targets as a selector. */
export async function selectorOf({ selector, clusterId, hostIds = [] }: Target): Promise<string> {
  if (selector !== undefined) return selector
  if (clusterId === undefined) return hostIds.map((id) => `@id:${id}`).join(',')
  return `@${(await call<Cluster>('GET', `api/clusters/${clusterId}`)).name}`
}
