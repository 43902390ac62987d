import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'ava'
import { isAlive, startTimeOf } from '../../../src/agent/processes/machine.ts'
import { kill } from '../../helpers/agents/agent-process.ts'
import { finished, running, startTask } from '../../helpers/clients/tasks.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { countStart, startPair, startsIn } from '../../helpers/servers/linked-pair.ts'
import { until } from '../../helpers/until.ts'

test('F14 a cancel made while the agent is down and the server restarts is delivered when the agent is back', async (t) => {
  const pair = await startPair(t)
  const { server, hostId, traces, agent } = pair
  const gate = join(traces, 'up')
  const content = `${countStart(traces)}; touch ${gate}; sleep 600`
  const taskId = await startTask(server, [hostId], { script: { content } })
  await running(server, taskId)
  await until('the script runs', () => existsSync(gate))
  await kill(agent, 'SIGKILL')
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await server.restart()
  await pair.startAgent()
  const ended = await finished(server, taskId)
  t.is(ended.status, 'CANCELLED')
  t.like(ended.results[0], {
    status: 'CANCELLED',
    exitCode: 143,
    signal: 'SIGTERM',
    survivors: [],
    error: null,
  })
  t.truthy(ended.results[0]?.containment)
  t.is(await startsIn(traces), 1)
})

test('F14 a script that ends before a cancel reaches its agent keeps its real result', async (t) => {
  const pair = await startPair(t)
  const { server, hostId, traces, agent } = pair
  const gate = join(traces, 'go')
  const wrapperFile = join(traces, 'wrapper')
  const content = `echo $PPID > ${wrapperFile}; ${countStart(traces)}; while ! [ -e ${gate} ]; do sleep 0.05; done; exit 7`
  const taskId = await startTask(server, [hostId], { script: { content } })
  await running(server, taskId)
  await until('the script runs', async () => (await startsIn(traces)) > 0)
  const pid = Number(await readFile(wrapperFile, 'utf8'))
  const wrapper = { pid, startTime: startTimeOf(pid) ?? 0 }
  await kill(agent, 'SIGKILL')
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  await writeFile(gate, '')
  await until('its exit code is written', () => !isAlive(wrapper))
  await pair.startAgent()
  const ended = await finished(server, taskId)
  t.is(ended.status, 'CANCELLED')
  t.like(ended.results[0], { status: 'FAILED', exitCode: 7 })
})

test('F14 a cancel made while the link is down ends the script once the link is back', async (t) => {
  let cut: Awaited<ReturnType<typeof startCutLink>> | undefined
  const { server, hostId, traces } = await startPair(t, async (url) => {
    cut = await startCutLink(t, url)
    return cut.url
  })
  const taskId = await startTask(server, [hostId], {
    script: { content: `${countStart(traces)}; sleep 600` },
  })
  await running(server, taskId)
  await until('the script runs', async () => (await startsIn(traces)) > 0)
  cut?.freeze()
  await server.data('POST', `/api/tasks/${taskId}/cancel`)
  cut?.thaw()
  cut?.cut()
  const ended = await finished(server, taskId)
  t.like(ended.results[0], { status: 'CANCELLED', exitCode: 143 })
  t.is(await startsIn(traces), 1)
})
