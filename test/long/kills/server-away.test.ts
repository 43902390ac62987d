import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { entries, finished, running, startTask } from '../../helpers/clients/tasks.ts'
import { countStart, startPair, startsIn } from '../../helpers/servers/linked-pair.ts'

const absences: [told: string, seconds: readonly number[]][] = [
  ['for 2 s, twice,', [2, 2]],
  ['for 30 s', [30]],
]
for (const [told, seconds] of absences)
  test(`F07 a server that is down ${told} while its task runs and ends has the real result and the exact output`, async (t) => {
    const { server, hostId, traces } = await startPair(t)
    const lines = Array.from({ length: 300 }, (_, at) => `line ${at + 1}\n`).join('')
    const content = `${countStart(traces)}; for i in $(seq 1 300); do echo "line $i"; sleep 0.05; done; echo late >&2; exit 3`
    const taskId = await startTask(server, [hostId], { script: { content } })
    await running(server, taskId)
    for (const away of seconds) {
      await delay(1000)
      await server.kill()
      await delay(away * 1000)
      await server.start()
    }
    const ended = await finished(server, taskId)
    const [result] = ended.results
    t.is(ended.status, 'FAILED')
    t.is(result?.exitCode, 3)
    t.true(result?.outputComplete)
    t.is(result?.stdoutBytes, lines.length)
    const stored = await entries(server, taskId)
    t.is(stored.map(({ stream, data }) => (stream === 'stdout' ? data : '')).join(''), lines)
    t.is(stored.map(({ stream, data }) => (stream === 'stderr' ? data : '')).join(''), 'late\n')
    t.is(await startsIn(traces), 1)
  })
