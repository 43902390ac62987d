import test from 'ava'
import { envelope } from '../fixtures/fake-server.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'
import { sessionId, startFakeTerminal } from '../helpers/terminals/fake-terminal.ts'
import { bashOnPty, rsm } from '../helpers/terminals/pty.ts'

test('COLORTERM of the client is sent, and omitted for a server that does not know it', async (t) => {
  const asked: { trueColor?: boolean }[] = []
  const server = await startFakeTerminal(t, {
    'POST /api/terminals': ({ body }, response) => {
      asked.push(body as object)
      const errors = [{ field: 'trueColor', message: 'unknown field' }]
      if (asked.length === 2) return envelope(response, 400, { message: 'Validation failed', errors })
      return { sessionId, ticket: 'x', path: '', expiresAt: '' }
    },
  })
  const env = { RSM_URL: server.url, RSM_TOKEN: 'x' }
  for (const more of [{ COLORTERM: '' }, { COLORTERM: 'truecolor' }]) {
    const pty = bashOnPty(t, `exec ${rsm} terminal web1`, temporaryDirectory(t), { ...env, ...more })
    const client = await server.client()
    client.attached()
    client.send('TERMINAL_CLOSED', { exitCode: 0, signal: null, reason: null })
    t.is(await pty.ended, 0)
  }
  t.deepEqual(
    asked.map(({ trueColor }) => trueColor),
    [undefined, true, undefined],
  )
})
