import type { Finding } from '../../core/checks/finding.ts'
import type { AgentState } from '../../core/hosts/agent-state.ts'
import { limitWords, showLimits } from '../../core/tasks/limits.ts'
import { renderFields } from '../text/table.ts'
import { showTime } from '../text/time.ts'
import { findingLines } from './findings-view.ts'
import { showRunAs } from './view.ts'

export function showAgent(
  state: AgentState & { readonly pid: number },
  findings: readonly Finding[],
  utc: boolean,
): string {
  const { hostId, hostname, executions, onDemand } = state
  const canLimit = (state.enforces ?? []).map((name) => limitWords[name]).join(', ')
  const fields = renderFields({
    agent: `${state.agentId} (pid ${state.pid})`,
    host: hostId === null ? `${hostname} (not registered yet)` : `${hostname} (@id:${hostId})`,
    server: state.url,
    linked: `${state.linked ? 'yes' : 'no'}, since ${showTime(state.since, utc)}${onDemand ? ' (on demand)' : ''}`,
    heartbeat: showTime(state.lastHeartbeatAt, utc),
    'scripts run as': showRunAs(state),
    'held by': state.containment,
    limits: showLimits(state.limits) || (state.enforces && `none (it can limit ${canLimit || 'nothing'})`),
    executions: `${executions.running} running, ${executions.queued} queued, ${executions.unacknowledged} unacknowledged`,
    terminals: state.terminals === null ? 'none can be opened' : `${state.terminals} open`,
  })
  return [fields, ...findingLines({ findings, well: [] }, hostname)].join('\n')
}
