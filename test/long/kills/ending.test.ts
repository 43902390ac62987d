import { spawnSync } from 'node:child_process'
import test from 'ava'
import type { ExecuteScript, ScriptComplete } from '../../../src/core/protocol/messages.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'

interface Case {
  name: string
  request: Partial<ExecuteScript>
  end: Partial<ScriptComplete>
  out?: string
}

const exits = [0, 1, 2, 125, 126, 127, 128, 255].map(
  (exitCode): Case => ({
    name: `exit-${exitCode}`,
    request: { script: `exit ${exitCode}` },
    end: { exitCode, status: exitCode === 0 ? 'SUCCESS' : 'FAILED', survivors: [] },
  }),
)

const cases = (marker: string): Case[] => [
  ...exits,
  {
    name: 'daemon',
    request: {
      script: `( setsid bash -c 'exec <&- >&- 2>&-; exec -a ${marker}-daemon sleep 600' & )\necho up; sleep 600`,
      timeout: 5,
    },
    end: { exitCode: -1, status: 'TIMEOUT', survivors: [], error: null },
    out: 'up\n',
  },
  {
    name: 'stubborn',
    request: { script: `trap '' TERM; echo up; while :; do sleep 0.2; done`, timeout: 1 },
    end: { exitCode: -1, status: 'TIMEOUT', survivors: [] },
  },
  {
    name: 'holds-stdout',
    request: { script: `( sleep 5; echo late; exec -a ${marker}-left sleep 20 ) & echo done; exit 3` },
    end: { exitCode: 3, status: 'FAILED' },
    out: 'done\n',
  },
  {
    name: 'closes-stdout',
    request: { script: 'echo early; exec >&- 2>&-; sleep 0.3; exit 5' },
    end: { exitCode: 5, status: 'FAILED' },
    out: 'early\n',
  },
  {
    name: 'reads-stdin',
    request: { script: 'read -r line; echo "eof $?"; cat; exit 6' },
    end: { exitCode: 6, status: 'FAILED' },
    out: 'eof 1\n',
  },
]

test('F14 results are true for scripts that daemonise, ignore TERM, hold or close stdout, or read stdin', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const marker = `rsm-ending-${process.pid}-${Date.now()}`
  const level = server.hellos[0]?.capabilities.containment
  for (const { name, request } of cases(marker))
    server.execute(agent.agentId, { taskId: name, timeout: 120, ...request })
  for (const { name, end, out } of cases(marker)) {
    const complete = await server.completed(name)
    t.like(complete, { ...end, containment: level }, name)
    if (out !== undefined) t.is(server.text(name), out, name)
  }
  t.is(spawnSync('pgrep', ['-f', `${marker}-daemon`]).status, 1)
  t.is(server.text('holds-stdout'), 'done\n')
  const { survivors = [], error } = await server.completed('holds-stdout')
  t.deepEqual(survivors.map(({ command }) => command).sort(), ['bash', 'sleep'])
  t.regex(error ?? '', /^\d+ \w+, \d+ \w+ still hold the script's output open: /)
})
