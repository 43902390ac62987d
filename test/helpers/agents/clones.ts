import { cp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { type RunningAgent, startAgent } from '../../../src/agent/main.ts'
import { finished, startTask } from '../clients/tasks.ts'
import { startTestServer } from '../servers/server.ts'
import { until } from '../until.ts'
import { agentOptions, temporaryDirectory } from './agent.ts'

/** Factor by which the agents' pauses and the server's minute for replacements are shorter. */
const haste = 6
const serverHaste = 500

/** Results of scripts on two agents with one identity, `cp -a` of one directory, that take the link from each other. */
export interface CloneRun {
  /** Number of starts by task. */
  starts: Map<string, number>
  statuses: Map<string, number>
  links: number
}

/** Runs silent scripts of 0.6 s, one started every 0.4 s, while the links alternate. */
export async function runOnClones(t: ExecutionContext, count: number): Promise<CloneRun> {
  const base = performance.now()
  const server = await startTestServer(t, {
    heartbeatInterval: 3600,
    wsIdleTimeout: 86_400,
    clock: { now: Date.now, monotonic: () => base + (performance.now() - base) * serverHaste },
  })
  const root = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  let links = 0
  const start = async (name: string): Promise<RunningAgent> => {
    const agent = await startAgent({
      ...agentOptions(server, join(root, name)),
      enrollToken,
      hostname: 'web1',
      maxExecutions: 64,
      clock: { ...systemClock, after: (wait, run) => systemClock.after(wait / haste, run) },
      logLevel: 'INFO',
      log: (_level, message) => {
        if (message === 'linked to the server') links++
      },
    })
    t.teardown(() => agent.stop())
    return agent
  }
  const first = await start('first')
  await until('the first is linked', () => first.linked())
  await cp(join(root, 'first'), join(root, 'second'), { recursive: true })
  await rm(join(root, 'second', 'lock'), { force: true })
  await start('second')
  const [host] = (await server.data('GET', '/api/hosts')).content
  const content = `echo $RSM_TASK_ID >> ${root}/starts; sleep 0.6`
  const tasks: string[] = []
  for (let n = 0; n < count; n++) {
    tasks.push(await startTask(server, [host.id], { script: { content }, timeout: 0, queueSeconds: 3600 }))
    await delay(400)
  }
  const run: CloneRun = { starts: new Map(), statuses: new Map(), links }
  for (const taskId of tasks) {
    const status = (await finished(server, taskId)).results[0]?.status ?? 'none'
    run.statuses.set(status, (run.statuses.get(status) ?? 0) + 1)
  }
  await delay(2000)
  const text = await readFile(join(root, 'starts'), 'utf8')
  for (const taskId of text.split('\n').filter((line) => line !== ''))
    run.starts.set(taskId, (run.starts.get(taskId) ?? 0) + 1)
  run.links = links
  return run
}
