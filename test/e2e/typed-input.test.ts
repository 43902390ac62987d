import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { AuditEntry } from '../../src/core/audit.ts'
import { InputKey } from '../../src/server/terminals/input-queue.ts'
import { temporaryDirectory } from '../helpers/agents/agent.ts'
import { realAgent } from '../helpers/agents/real-agent.ts'
import { type Frame, startFrameRelay } from '../helpers/servers/frame-relay.ts'
import { startTestServer } from '../helpers/servers/server.ts'
import { ScriptedTerminal } from '../helpers/terminals/terminal-client.ts'
import { until } from '../helpers/until.ts'

/** A real server and a real agent with a relay between them, and a shell that a user has open. */
async function relayed(t: ExecutionContext) {
  const server = await startTestServer(t)
  const relay = await startFrameRelay(t, server.url)
  const { hostId } = await realAgent(t, server, { hostname: 'web1', url: relay.url })
  const linked = async () => (await server.data('GET', `/api/hosts/${hostId}`)).agent.connected as boolean
  await until('it is linked', linked)
  const attach = async () => {
    const asked = { hostId, cols: 80, rows: 24, shell: 'sh' }
    const { sessionId } = (await server.data('POST', '/api/terminals', asked)) as { sessionId: string }
    return { user: await ScriptedTerminal.attach(server, sessionId), sessionId }
  }
  const open = async () => {
    const { user, sessionId } = await attach()
    user.type("PS1='' ; stty -echo; echo ready-$((1 + 1))\n")
    await user.shows('ready-2\r\n')
    return { user, sessionId }
  }
  const directory = await temporaryDirectory(t)
  const marks = join(directory, 'marks')
  /** Words the shell was made to note, in order. */
  const noted = () => (existsSync(marks) ? readFileSync(marks, 'utf8').trim().split('\n') : [])
  const note = (word: string) => `echo ${word} >> ${marks}; echo done-${word}\n`
  const typed = () => relay.fromServer.filter(({ type }) => type === 'TERMINAL_INPUT')
  return { server, relay, attach, open, note, noted, typed, linked }
}

const inputs = (frame: Frame) => frame.type === 'TERMINAL_INPUT'

test('A10 P47 input typed or repeated by a relay is refused and reported, while the user’s input works, even over a new link', async (t) => {
  const { server, relay, open, note, noted, typed, linked } = await relayed(t)
  const { user, sessionId } = await open()
  user.type(note('first'))
  await user.shows('done-first\r\n')
  const [before] = typed().slice(-1)
  if (!before) throw new Error('nothing was typed')
  t.is(before.payload['counter'], 1)
  const evil = note('evil')
  const mac = randomBytes(32).toString('base64url')
  relay.inject('TERMINAL_INPUT', { sessionId, data: evil })
  relay.inject('TERMINAL_INPUT', { sessionId, data: evil, counter: 2, mac })
  relay.inject('TERMINAL_INPUT', {
    ...(before.payload as { mac: string }),
    sessionId,
    data: evil,
    counter: 2,
  })
  relay.inject('TERMINAL_RESIZE', { sessionId, cols: 33, rows: 7 })
  relay.resend(before)
  const refused = await user.next('ERROR')
  t.is(refused.code, 403)
  t.regex(refused.message, /tries to type into this session/)
  user.type(note('second'))
  await user.shows('done-second\r\n')
  user.type('stty size\n')
  await user.shows('24 80\r\n')

  relay.cut()
  await user.next('TERMINAL_NOTICE', ({ kind }) => kind === 'host-back')
  await until('it is linked', linked)
  relay.resend(before)
  for (const frame of typed()) relay.resend(frame)
  relay.inject('TERMINAL_INPUT', { sessionId, data: evil })
  user.type(note('third'))
  await user.shows('done-third\r\n')
  t.deepEqual(noted(), ['first', 'second', 'third'])
  const { content } = (await server.data('GET', '/api/audit?size=500')) as { content: AuditEntry[] }
  const told = content.filter(({ action }) => action === 'agent.distrust')
  t.regex(JSON.stringify(told), /signature missing or not from the server \(TERMINAL_INPUT/)
})

test('A10 P47 a relay that omits or swaps input ends the session instead of changing the input', async (t) => {
  const { relay, open, note, noted, typed } = await relayed(t)
  const dropped = await open()
  dropped.user.type(note('first'))
  await dropped.user.shows('done-first\r\n')
  relay.change = (frame, to) =>
    to === 'agent' && inputs(frame) && frame.payload['data'] === ' ' ? [] : [frame]
  for (const key of ['rm', ' ', '/tmp/x\n']) dropped.user.type(key)
  t.regex((await dropped.user.next('TERMINAL_CLOSED')).reason ?? '', /^signature is valid, but .* is missing/)

  relay.change = (frame) => [frame]
  const reopened = await open()
  // Replays the TERMINAL_OPEN signed for this link, to make the agent forget the omitted input.
  const [asked] = relay.fromServer.filter(({ type }) => type === 'TERMINAL_OPEN').slice(-1)
  if (!asked) throw new Error('nothing was opened')
  relay.change = (frame, to) => {
    if (to !== 'agent' || !inputs(frame) || frame.payload['data'] !== ' ') return [frame]
    return [asked]
  }
  for (const key of ['rm', ' ']) reopened.user.type(key)
  await until('the agent is asked again', () => typed().at(-1)?.payload['data'] === ' ')
  reopened.user.type('/tmp/x\n')
  t.regex((await reopened.user.next('TERMINAL_CLOSED')).reason ?? '', /^signature is valid, but/)

  relay.change = (frame) => [frame]
  const swapped = await open()
  let held: Frame | null = null
  relay.change = (frame, to) => {
    if (to !== 'agent' || !inputs(frame)) return [frame]
    const first = held
    held = first === null ? frame : null
    return first === null ? [] : [frame, first]
  }
  swapped.user.type(note('a'))
  swapped.user.type(note('b'))
  t.regex((await swapped.user.next('TERMINAL_CLOSED')).reason ?? '', /^signature is valid, but/)
  t.deepEqual(noted(), ['first'])
})

test('A10 P47 a relay that replaces or removes the agent’s key blocks the user’s input and can type nothing', async (t) => {
  const { relay, attach, open, note, noted } = await relayed(t)
  const keys = new Map<string, InputKey>()
  const offered = new Map<string, string>()
  let isTaken = false
  const changeKey = (frame: Frame, to: 'agent' | 'server'): Frame[] => {
    const { type, payload } = frame
    const sessionId = String(payload['sessionId'])
    if (type === 'TERMINAL_OPEN') offered.set(sessionId, String(payload['inputKey']))
    if (to !== 'server' || type !== 'TERMINAL_OPENED') return [frame]
    const { inputKey, ...rest } = payload
    t.is(typeof inputKey, 'string')
    if (isTaken) return [{ ...frame, payload: rest }]
    const key = new InputKey(sessionId)
    key.agree(offered.get(sessionId) ?? '')
    keys.set(sessionId, key)
    return [{ ...frame, payload: { ...rest, inputKey: key.publicKey } }]
  }
  relay.change = changeKey
  for (isTaken of [false, true]) {
    const { user, sessionId } = await attach()
    user.type(note('user'))
    t.is((await user.next('ERROR')).code, 403)
    const forged = { sessionId, data: note('evil') }
    relay.inject('TERMINAL_INPUT', keys.get(sessionId)?.addMac('TERMINAL_INPUT', forged) ?? forged)
  }
  // This session is opened later on the same host, so any forged input would be noted before its own.
  relay.change = (frame) => [frame]
  const { user } = await open()
  user.type(note('last'))
  await user.shows('done-last\r\n')
  t.deepEqual(noted(), ['last'])
})

test('A10 P47 a relay that removes the key from a TERMINAL_OPEN opens no session', async (t) => {
  const { relay, open } = await relayed(t)
  relay.change = (frame) => {
    const { inputKey: _, ...rest } = frame.payload
    return [frame.type === 'TERMINAL_OPEN' ? { ...frame, payload: rest } : frame]
  }
  await t.throwsAsync(open(), { message: /signature does not verify/ })
})
