import test from 'ava'
import { linkedAgent } from '../../helpers/agents/agent.ts'

test('F14 a flood of output is bounded on disk, and its size is reported', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const megabytes = 300
  const script = `head -c ${megabytes}M /dev/zero | tr '\\0' x; printf end; du -m "$(readlink /proc/$$/fd/1)" | cut -f1 >&2`
  server.execute(agent.agentId, { taskId: 'flood', script, maxOutputBytes: 1 << 20 })
  const complete = await server.completed('flood')
  t.is(complete.exitCode, 0)
  t.true(complete.truncated)
  t.is(complete.stdoutBytes, megabytes * 1024 * 1024 + 3)
  const text = server.text('flood')
  t.true(text.endsWith('end') && text.length < (1 << 20) + 200, `${text.length} characters`)
  t.true(Number(server.text('flood', 'stderr')) < 150, `${server.text('flood', 'stderr')} MB on disk`)
})
