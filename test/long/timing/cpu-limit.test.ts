import test from 'ava'
import { findLimiter } from '../../../src/agent/processes/limits.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'

const limited = findLimiter('test', true).enforced.includes('cpuPercent') ? test : test.skip // Only where the agent may make cgroups.

limited('a busy script gets its limited share of a core', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const script = `import time
began = time.monotonic()
while time.process_time() < 0.3: pass
print(time.monotonic() - began)`
  server.execute(agent.agentId, { taskId: 'busy', scriptType: 'PYTHON', script, limits: { cpuPercent: 20 } })
  await server.completed('busy')
  const took = Number(server.text('busy'))
  t.true(took > 1, `0.3 s of CPU took ${took} s`)
})
