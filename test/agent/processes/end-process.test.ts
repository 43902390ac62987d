import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test, { type ExecutionContext } from 'ava'
import { endProcess, identify, isAlive, type ProcessId } from '../../../src/agent/processes/machine.ts'

async function started(t: ExecutionContext, script: string): Promise<ProcessId> {
  const child = spawn('sh', ['-c', `${script}; echo ready; while :; do sleep 0.1; done`])
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const id = identify(child.pid ?? 0)
  if (id === null) throw new Error('the process has ended')
  return id
}

test('endProcess ends a process with SIGTERM, and one that ignores it with SIGKILL', async (t) => {
  for (const script of ['true', "trap '' TERM"]) {
    const id = await started(t, script)
    await endProcess(id, 1000)
    t.false(isAlive(id), script)
  }
})

test('endProcess does not touch a later process with the same pid', async (t) => {
  const id = await started(t, 'true')
  await endProcess({ ...id, startTime: id.startTime - 1 }, 1000)
  t.true(isAlive(id))
})
