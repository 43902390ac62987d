import test from 'ava'
import { entries, finished, startTask } from '../../helpers/clients/tasks.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { countStart, startPair, startsIn } from '../../helpers/servers/linked-pair.ts'

const cases: [what: string, text: string, deliver: boolean][] = [
  ['before it delivers EXECUTE_SCRIPT', '"EXECUTE_SCRIPT"', false],
  ['right after it delivered EXECUTE_SCRIPT', '"EXECUTE_SCRIPT"', true],
  ['before it delivers the first acknowledgement of output', '"SCRIPT_ACK"', false],
  ['before it delivers the acknowledgement of SCRIPT_COMPLETE', '"complete":true', false],
]
for (const [what, text, deliver] of cases)
  test(`F10 a link that is cut ${what}: one start, one result, complete output`, async (t) => {
    let link: Awaited<ReturnType<typeof startCutLink>> | undefined
    const { server, hostId, traces } = await startPair(t, async (url) => {
      link = await startCutLink(t, url)
      return link.url
    })
    const cut = link?.cutAt(text, { deliver })
    const content = `${countStart(traces)}; echo one; echo uno >&2; sleep 0.2; echo two; exit 3`
    const taskId = await startTask(server, [hostId], { script: { content } })
    await cut
    const [result] = (await finished(server, taskId)).results
    t.like(result, { status: 'FAILED', exitCode: 3, outputComplete: true, lateResult: null })
    t.is(await startsIn(traces), 1)
    const output = await entries(server, taskId)
    t.is(output.map(({ stream, data }) => (stream === 'stdout' ? data : '')).join(''), 'one\ntwo\n')
    t.is(output.map(({ stream, data }) => (stream === 'stderr' ? data : '')).join(''), 'uno\n')
    const next = await startTask(server, [hostId], { script: { content: 'exit 0' } })
    t.is((await finished(server, next)).status, 'SUCCESS')
  })
