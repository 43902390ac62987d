import { readlinkSync } from 'node:fs'
import test, { type ExecutionContext } from 'ava'
import { realDisk } from '../../fixtures/server-main.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { scrape } from '../../helpers/metrics/scrape.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const chunk = 64 * 1024
const bound = 1024 * 1024

/** A disk that makes no output durable until `goOn` is called; `asked` settles at the first attempt. */
function stuckDisk(t: ExecutionContext): { asked: Promise<void>; goOn(): void } {
  const real = { ...realDisk }
  let goOn = () => {}
  const opened = new Promise<void>((resolve) => {
    goOn = resolve
  })
  let ask = () => {}
  const asked = new Promise<void>((resolve) => {
    ask = resolve
  })
  realDisk.datasync = async (descriptor) => {
    if (readlinkSync(`/proc/self/fd/${descriptor}`).endsWith('output.log')) {
      ask()
      await opened
    }
    await real.datasync(descriptor)
  }
  t.teardown(() => {
    goOn()
    Object.assign(realDisk, real)
  })
  return { asked, goOn }
}

test('F14 a server with a stuck disk reads a bounded part of a flood, loses none of it, and serves others', async (t) => {
  const server = await startTestServer(t)
  const flooding = await server.enroll('flooding')
  const quiet = await server.enroll('quiet')
  const disk = stuckDisk(t)
  const flood = await ScriptedAgent.link(server, flooding)
  const other = await ScriptedAgent.link(server, quiet)
  const taskId = await startTask(server, [flooding.hostId], { maxOutputBytes: 64 * 1024 * 1024 })
  await flood.execution(taskId)
  const count = 250
  const text = (sequence: number) => `${String(sequence).padStart(8, '0')}\n`.repeat(chunk / 9)
  for (let sequence = 0; sequence < count; sequence += 1) flood.output(taskId, sequence, text(sequence))
  flood.complete(taskId, 0, { lastSequence: count - 1 })
  await disk.asked

  // Answers to the other link and to API calls prove that the server had time to read the flood.
  for (let round = 0; round < 20; round += 1) {
    await other.settled()
    const backlog = (await scrape(server)).of('rsm_frame_backlog_bytes')
    t.true(backlog <= bound + 4 * chunk, `${backlog} bytes wait in round ${round}`)
  }
  t.true(flood.socket.bufferedAmount > bound, 'the agent still holds most of it')
  t.false(
    flood.heard.some(({ type }) => type === 'SCRIPT_ACK'),
    'nothing is acknowledged that is not durable',
  )

  disk.goOn()
  const task = await finished(server, taskId)
  t.is(task.status, 'SUCCESS')
  t.true(task.results[0]?.outputComplete)
  const log = await fetch(`${server.url}/api/tasks/${taskId}/logs`, {
    headers: { authorization: `Bearer ${server.token}`, accept: 'text/plain' },
  })
  const expected = Array.from({ length: count }, (_, sequence) => text(sequence)).join('')
  t.true((await log.text()) === expected, 'every byte once and in order')
  t.is((await entries(server, taskId))[0]?.sequence, 0)
})
