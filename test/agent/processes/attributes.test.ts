import { spawnSync } from 'node:child_process'
import type { TerminalOpen } from '../../../src/core/protocol/messages.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess } from '../../helpers/agents/agent-process.ts'
import { anotherUser, asRoot } from '../../helpers/agents/modes.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { ranOnTerminal } from '../../helpers/terminals/terminal-session.ts'

/** Starts the agent with unusual limits, OOM score, nice value, I/O class and CPUs. */
const under = [
  'sh',
  '-c',
  'ulimit -S -s 4096; exec choom -n 300 -- nice -n 7 ionice -c 3 taskset -c 0 "$@"',
  'sh',
]
const looks =
  "cat /proc/self/oom_score_adj; nice; LC_ALL=C ionice -p $$; sed -n 's/^Cpus_allowed_list:\\s*//p' /proc/$$/status; ulimit -s"

asRoot(
  'scripts, their background processes and terminals do not inherit the priorities and limits of the agent',
  async (t) => {
    const usual = spawnSync('sh', ['-c', looks.replaceAll('$$', '1').replace('self', '1')], {
      encoding: 'utf8',
    })
    const [oomScore, , ioClass, processors] = usual.stdout.split('\n')
    const expected = [oomScore, '0', ioClass, processors, '8192', ''].join('\n')
    const server = await FakeServer.start()
    t.teardown(() => server.close())
    const agentId = 'held-back'
    await agentProcess(t, server, await temporaryDirectory(t), { ...anotherUser, agentId, under })
    await server.linked()
    const as: Record<string, Partial<TerminalOpen>> = { nobody: {}, daemon: { runAs: 'daemon' } }
    for (const [taskId, user] of Object.entries(as)) {
      server.execute(agentId, { taskId, script: `${looks}; (${looks}) & wait`, ...user })
      await server.completed(taskId)
      t.is(server.text(taskId), expected + expected, taskId)
      const { text } = await ranOnTerminal(server, agentId, { command: looks, shell: 'bash', ...user })
      t.is(text.replaceAll('\r', ''), expected, taskId)
    }
  },
)
