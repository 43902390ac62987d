import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { stateFileName } from '../../../src/agent/reports/status-file.ts'
import type { AgentState } from '../../../src/core/hosts/agent-state.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { until } from '../../helpers/until.ts'

test('an agent writes its status at the end of a script, but not for keystrokes or acknowledgements', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const path = join(dataDir, stateFileName)
  const read = () => JSON.parse(readFileSync(path, 'utf8')) as AgentState
  const runningIs = (count: number) =>
    until(`${count} are running`, () => read().executions.running === count)
  server.execute(agent.agentId, {
    taskId: 'runs',
    script: 'cat /dev/zero | head -c 100000 | base64; sleep 60',
  })
  await runningIs(1)
  const writes = new Map<number, string>()
  for (let turn = 0; turn < 30; turn++) {
    server.send('TERMINAL_INPUT', { sessionId: 'none', data: 'x' })
    server.send('SCRIPT_ACK', { taskId: 'runs', sequence: 0, complete: false })
    await delay(100)
    writes.set(statSync(path).ino, readFileSync(path, 'utf8'))
  }
  // One heartbeat may have been acknowledged meanwhile.
  t.true(writes.size <= 2)
  t.is(new Set(writes.values()).size, writes.size)
  server.send('CANCEL_SCRIPT', { taskId: 'runs' })
  await runningIs(0)
})
