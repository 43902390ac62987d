import { setImmediate as turn } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { openClient } from '../../src/client/client.ts'
import { Attachment } from '../../src/net/attachment.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { startCutLink } from '../helpers/faults/cut-link.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { until } from '../helpers/until.ts'

const length = 100_000
const paste = Array.from({ length: length / 10 }, (_, at) => `${String(at).padStart(9, '0')}\n`).join('')
const pieceLength = 2_000

/** A session that echoes raw input; the test can cut both connections between client and host. */
async function openPaste(t: ExecutionContext) {
  const server = await startTestServer(t)
  const toHost = await startCutLink(t, server.url)
  const { hostId } = await realAgent(t, { ...server, url: toHost.url }, { hostname: 'web1' })
  await until('it is linked', async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent.connected)
  const toServer = await startCutLink(t, server.url)
  const command = 'stty raw -echo; printf ready:; cat'
  const body = { hostId, cols: 80, rows: 24, shell: 'sh', command }
  const { sessionId } = await server.data('POST', '/api/terminals', body)
  const client = await openClient({ url: toServer.url, token: server.token })
  const seen = { text: '', refused: [] as string[], attached: 0 }
  const attachment = new Attachment({
    sessionId,
    watch: false,
    open: client.session(sessionId, false),
    attached: () => void seen.attached++,
    output(data, shown) {
      seen.text += data
      shown()
    },
    resized: () => undefined,
    notice: () => undefined,
    refused: (message) => void seen.refused.push(message),
    cut: () => undefined,
    drained: () => undefined,
  })
  const ended = attachment.run()
  t.teardown(async () => {
    attachment.leave()
    await ended
  })
  await until('it is ready', () => seen.text === 'ready:')
  return { server, attachment, seen, toServer, toHost }
}

/** Pastes in pieces, and cuts after those in `cuts`. */
async function pasteOver(attachment: Attachment, cut: () => void, cuts: readonly number[]): Promise<void> {
  for (let at = 0; at < length; at += pieceLength) {
    attachment.type(paste.slice(at, at + pieceLength))
    if (cuts.includes(at / pieceLength)) cut()
    // At the speed of a terminal.
    await turn()
  }
}

const places = (count: number) =>
  Array.from({ length: count }, () => Math.floor(Math.random() * (length / pieceLength)))

for (const [what, side] of [
  ['client and server', 'toServer'],
  ['server and host', 'toHost'],
] as const)
  test(`P58 a paste over cuts between ${what} is typed whole and only once`, async (t) => {
    const opened = await openPaste(t)
    const { attachment, seen } = opened
    const cuts = places(2)
    await pasteOver(attachment, () => opened[side].cut(), cuts)
    await until(`the paste is typed, cut after ${cuts.join()}`, () => seen.text.length >= length + 6)
    t.is(seen.text, `ready:${paste}`)
    t.deepEqual(seen.refused, [])
  })

test('P58 a paste over a restart of the server is typed whole and only once', async (t) => {
  const { server, attachment, seen } = await openPaste(t)
  let restarted: Promise<void> | undefined
  const cuts = places(1)
  const restart = () => {
    restarted = server.restart()
  }
  await pasteOver(attachment, restart, cuts)
  await restarted
  await until(`the paste is typed, cut after ${cuts.join()}`, () => seen.text.length >= length + 6)
  t.is(seen.text, `ready:${paste}`)
  t.deepEqual(seen.refused, [])
})
