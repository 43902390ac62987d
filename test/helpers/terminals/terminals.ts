import type { ScriptedAgent } from '../agents/scripted-agent.ts'
import type { TestServer } from '../servers/server.ts'

/** Options of the HELLO of an agent that can open terminals. */
export const withTerminals = { capabilities: { terminal: true } } as const

/** Opens a session that its agent accepts; returns the TERMINAL_OPEN as `frame`. */
export async function openTerminal(
  server: Pick<TestServer, 'data'>,
  agent: ScriptedAgent,
  hostId: number,
  more: object = {},
) {
  const asked = server.data('POST', '/api/terminals', { hostId, cols: 80, rows: 24, ...more })
  const frame = await agent.next('TERMINAL_OPEN')
  agent.send('TERMINAL_OPENED', { sessionId: frame.sessionId })
  const created = (await asked) as { sessionId: string; ticket: string; path: string; expiresAt: string }
  return { frame, created, sessionId: created.sessionId }
}

/** The events of a recording, without their times; fails on a line that is not an asciicast v2 event. */
export async function recordingOf(server: Pick<TestServer, 'api'>, sessionId: string) {
  const { status, body } = await server.api('GET', `/api/terminals/${sessionId}/recording`)
  if (status !== 200) throw new Error(`no recording: ${status} ${JSON.stringify(body)}`)
  const text = body.data as string
  if (!text.endsWith('\n')) throw new Error('the last line is torn')
  const [header, ...events] = text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
  let before = 0
  const shown = events.map((event) => {
    const [seconds, code, data] = event as [number, string, string]
    if (!(seconds >= before) || !['o', 'r', 'm'].includes(code) || typeof data !== 'string')
      throw new Error(`not an asciicast v2 event: ${JSON.stringify(event)}`)
    before = seconds
    return [code, data] as const
  })
  const output = shown
    .filter(([code]) => code === 'o')
    .map(([, data]) => data)
    .join('')
  return { header: header as { version: number; width: number; height: number }, events: shown, output }
}
