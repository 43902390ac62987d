import test from 'ava'
import { ScriptedAgent } from '../../helpers/scripted-agent.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'
import { ShiftedClock } from '../../helpers/shifted-clock.ts'
import { ScriptedTerminal } from '../../helpers/terminal-client.ts'
import { openTerminal, withTerminals } from '../../helpers/terminals.ts'

const clock = new ShiftedClock()
let server: TestServer
let stop: () => unknown
let hosts = 0
test.before(async (t) => {
  // Its teardown would come with the end of this hook.
  const teardown = (end: () => unknown) => {
    stop = end
  }
  server = await startTestServer({ ...t, teardown }, { clock })
})
test.after.always(() => stop())

/** A host with its agent, on the one server of all cases. */
async function start() {
  const identity = await server.enrol(`end${++hosts}`)
  const agent = await ScriptedAgent.link(server, identity, withTerminals)
  return { identity, agent, hostId: identity.hostId }
}

test.serial('P40 a reason of any length and script closes the socket of its client whole', async (t) => {
  const { agent, hostId } = await start()
  for (const reason of ['é'.repeat(99), 'a'.repeat(2000), `ab${'🙂'.repeat(60)}`, `${'漢'.repeat(41)}`]) {
    const { sessionId } = await openTerminal(server, agent, hostId)
    const client = await ScriptedTerminal.attach(server, sessionId)
    await client.next('TERMINAL_ATTACHED')
    agent.send('TERMINAL_CLOSED', { sessionId, exitCode: null, signal: null, reason })
    t.is((await client.next('TERMINAL_CLOSED')).reason, reason)
    const { code, reason: said } = await client.closed
    t.is(code, 1000)
    t.true(said !== '' && reason.startsWith(said))
  }
})
