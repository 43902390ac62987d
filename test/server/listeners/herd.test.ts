import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createAdmission } from '../../../src/server/listeners/agent-listener.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

const herd = 1500
/** The kernel's limit for the backlog of a listener. */
const somaxconn = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))
/** Number of established connections to a port, accepted or not. */
function madeAt(port: number): number {
  const place = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const established = '01'
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  const sockets = lines.map((line) => line.trim().split(/\s+/))
  const made = sockets.filter(
    ([, local, , state]) => local?.endsWith(place) === true && state === established,
  )
  // The kernel may list a socket twice if others change during the read.
  return new Set(made.map(([, , remote]) => remote)).size
}

/** Connects in one turn of the event loop, so that no connection is accepted in between. */
async function connectAtOnce(t: ExecutionContext, port: number, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    t.teardown(() => socket.destroy())
  }
  await new Promise((resolve) => process.nextTick(resolve))
}

test("A12 the kernel's backlog holds a burst of connections before the first is accepted", async (t) => {
  const server = await startTestServer(t)
  const port = Number(new URL(server.url).port)
  const before = madeAt(port)
  await connectAtOnce(t, port, herd)
  t.is(madeAt(port) - before, Math.min(herd, somaxconn + 1))
})

test('A12 links are admitted in turns and in order, and later ones wait for their turn', async (t) => {
  const admission = createAdmission()
  const admitted: number[] = []
  const perTurn: number[] = []
  for (let n = 0; n < 100; n++) admission.queue(() => admitted.push(n))
  while (admitted.length < 150) {
    const before = admitted.length
    await setImmediate()
    perTurn.push(admitted.length - before)
    if (perTurn.length === 2) for (let n = 100; n < 150; n++) admission.queue(() => admitted.push(n))
    if (perTurn.length > 100) break
  }
  t.deepEqual(
    admitted,
    Array.from({ length: 150 }, (_, n) => n),
  )
  t.true(Math.max(...perTurn) <= 20, perTurn.join(' '))
})
