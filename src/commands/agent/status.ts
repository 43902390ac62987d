import { resolve } from 'node:path'
import { string } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { dataDirectory, dataDirectoryHelp, defaultDataDirectory } from '../../cli/flags/service.ts'
import { findingData } from '../../cli/hosts/findings-view.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { examineAgent, isReachable } from '../../core/checks/examine-agent.ts'

export default class AgentStatus extends LocalCommand {
  static override summary = 'Show the state of the agent on this host'
  static override description =
    'Lists faults at the end, each with a fix. Exit code: 0 if scripts can reach the agent (it is linked, or links on ' +
    'demand), 1 if not, 5 if no agent is running on that data directory.'
  static override examples = ['$ rsm agent status', '$ rsm agent status --data-dir /tmp/web1 --json']
  static override flags = {
    'data-dir': string({
      env: 'RSM_AGENT_DATA_DIR',
      helpValue: 'DIR',
      description: dataDirectoryHelp('agent'),
    }),
  }

  async run() {
    const { flags } = await this.parse(AgentStatus)
    const { readAgentFacts } = await import('../../agent/reports/read-state.ts')
    const { showAgent } = await import('../../cli/hosts/agent-view.ts')
    const usual = defaultDataDirectory('agent')
    const directory = resolve(dataDirectory('agent', flags['data-dir']))
    const option = directory === resolve(usual) ? '' : `--data-dir ${shellWord(directory)}`
    const { state, facts } = await readAgentFacts(directory, option)
    const { findings } = examineAgent(facts)
    this.print(showAgent(state, findings, flags.utc))
    process.exitCode = isReachable(facts) ? 0 : 1
    return {
      ...state,
      freePercent: facts.freePercent,
      findings: findings.map((each) => findingData(each, state.hostname)),
    }
  }
}
