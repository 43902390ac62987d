import { string } from '@oclif/core/flags'
import { limitWords, showLimits } from '../../core/limits.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { dataDirectoryHelp, defaultDataDirectory } from '../../ui/command/directories.ts'
import { showRunAs } from '../../ui/hosts/view.ts'
import { renderFields } from '../../ui/text/table.ts'
import { showTime } from '../../ui/text/time.ts'

export default class AgentStatus extends BaseCommand {
  static override summary =
    'Show how the agent of this host is; exit code 0 when it is linked, 1 when it is not'
  static override examples = ['$ rsm agent status', '$ rsm agent status --data-dir /tmp/web1 --json']
  static override flags = {
    'data-dir': string({
      env: 'RSM_AGENT_DATA_DIR',
      helpValue: 'DIR',
      description: `directory of the agent; ${dataDirectoryHelp('agent')}`,
    }),
  }

  async run() {
    const { flags } = await this.parse(AgentStatus)
    this.globals = flags
    const { readAgentState } = await import('../../agent/status.ts')
    const state = readAgentState(flags['data-dir'] ?? defaultDataDirectory('agent'))
    const { executions, enforces, limits, linked, reason, since } = state
    const link = `${linked ? 'yes' : 'no'}, since ${showTime(since, flags.utc)}`
    const isUnbounded = state.runsAsRoot && state.sandbox === 'none'
    const canLimit = enforces.map((name) => limitWords[name]).join(', ')
    this.print(
      renderFields(
        {
          agent: `${state.agentId} (pid ${state.pid})`,
          host: state.hostId === null ? state.hostname : `${state.hostname} (@id:${state.hostId})`,
          server: state.url,
          linked: reason === null ? link : `${link}: ${reason}`,
          heartbeat: showTime(state.lastHeartbeatAt, flags.utc),
          'scripts run as': showRunAs(state),
          'held by': state.containment,
          limits: showLimits(limits) || `none (it can limit ${canLimit || 'nothing'})`,
          executions: `${executions.running} running, ${executions.queued} queued, ${executions.unacknowledged} unacknowledged`,
          terminals: state.terminals === null ? 'none can be opened here' : `${state.terminals} open`,
        },
        isUnbounded ? ['scripts run as'] : [],
      ),
    )
    process.exitCode = linked ? 0 : 1
    return state
  }
}
