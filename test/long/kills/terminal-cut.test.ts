import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { plainShell } from '../../helpers/terminals/plain-shell.ts'
import { bashOnPty, rsm } from '../../helpers/terminals/pty.ts'
import { until } from '../../helpers/until.ts'

/** More than the buffer for unacknowledged output, for longer than the cut. */
const lines = 1500
const lineOf = (at: number) => `line ${at} 漢字 ${String(at).padStart(400, '0')}`

/** `rsm terminal` during long output, over a network path that the test can cut. */
async function inMidOutput(t: ExecutionContext) {
  t.timeout(300_000)
  const server = await startTestServer(t)
  const { hostId } = await realAgent(t, server, { hostname: 'web1' })
  await until(
    'the agent is linked',
    async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent.connected,
  )
  const link = await startCutLink(t, server.url)
  const command = `stty -opost; for i in $(seq ${lines}); do printf "line %d 漢字 %0400d\\n" $i $i; sleep 0.025; done; exit 9`
  const pty = bashOnPty(
    t,
    `${rsm} terminal web1 --shell ${plainShell(t)} -- '${command}'; echo "exit $?"`,
    temporaryDirectory(t),
    {
      RSM_URL: link.url,
      RSM_TOKEN: server.token,
    },
  )
  await pty.shows(/line 100 /)
  const exact = async () => {
    await pty.shows(/exit \d+/)
    t.regex(pty.shown, /exit 9/)
    const got = pty.shown.replaceAll('\r', '').split('\n')
    const shown = got.filter((line) => line.startsWith('line '))
    t.deepEqual(
      shown,
      Array.from({ length: lines }, (_, at) => lineOf(at + 1)),
    )
    return got.filter((line) => line.startsWith('rsm: '))
  }
  return { link, pty, exact }
}

test('F20 a terminal survives 20 s without a network: no output is missing or repeated', async (t) => {
  const { link, exact } = await inMidOutput(t)
  link.freeze()
  await delay(20_000)
  link.thaw()
  t.log(await exact())
})

test('F20 a terminal reattaches automatically after a dead path and after cuts, and says so', async (t) => {
  const { link, pty, exact } = await inMidOutput(t)
  link.freeze({ standing: true })
  await pty.shows(/rsm: reattached/)
  link.thaw()
  link.cut()
  await pty.shows(/rsm: reattached[\s\S]*rsm: reattached/)
  const said = await exact()
  t.deepEqual(said.slice(0, 3), [
    'rsm: to leave: ~. at the beginning of a line; ~? shows more',
    'rsm: connection lost, reattaching (60 s)...',
    'rsm: reattached',
  ])
})

test('P58 F20 a paste into `rsm terminal` across three cuts arrives complete', async (t) => {
  t.timeout(120_000)
  const server = await startTestServer(t)
  const { hostId } = await realAgent(t, server, { hostname: 'web1' })
  await until(
    'the agent is linked',
    async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent.connected,
  )
  const link = await startCutLink(t, server.url)
  const paste = Array.from({ length: 10_000 }, (_, at) => `${String(at).padStart(9, '0')}\n`).join('')
  const command = 'stty raw -echo; echo ready; head -c 100000 | sha256sum; stty sane; exit 9'
  const env = { RSM_URL: link.url, RSM_TOKEN: server.token }
  const line = `${rsm} terminal web1 --shell ${plainShell(t)} --escape none -- '${command}'; echo "exit $?"`
  const pty = bashOnPty(t, line, temporaryDirectory(t), env)
  await pty.shows(/ready/)
  for (let at = 0; at < paste.length; at += 2_000) {
    pty.type(paste.slice(at, at + 2_000))
    if (at % 30_000 === 28_000) link.cut()
    await delay(2)
  }
  await pty.shows(/exit 9/)
  t.true(pty.shown.includes(createHash('sha256').update(paste).digest('hex')), pty.shown)
  t.notRegex(pty.shown, /missing/)
  t.regex(pty.shown, /reattached/)
})
