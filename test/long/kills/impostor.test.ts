import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import type { AuditEntry } from '../../../src/core/audit.ts'
import type { ExecuteScript, FromAgent, ScriptComplete } from '../../../src/core/protocol/messages.ts'
import { signedBytes } from '../../../src/core/protocol/orders.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { tapServer } from '../../helpers/servers/tapped-server.ts'

const program = fileURLToPath(new URL('../../fixtures/impostor.js', import.meta.url))
const patience = 60_000

type Heard = FromAgent | { type: 'READY' }

/** The impostor in a process of its own, with all messages that it received from the agent. */
class Impostor {
  readonly #child: ChildProcess
  readonly #heard: Heard[] = []
  readonly #arrivals = new EventEmitter()
  #ids = 0

  constructor(t: ExecutionContext, port: number, serverTime: string) {
    this.#child = spawn(process.execPath, [program, String(port), serverTime], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    if (this.#child.stdout)
      createInterface({ input: this.#child.stdout }).on('line', (line) => {
        this.#heard.push(JSON.parse(line) as Heard)
        this.#arrivals.emit('line')
      })
    t.teardown(() => this.end())
  }

  end(): Promise<void> {
    return kill(this.#child, 'SIGKILL')
  }

  send(type: string, payload: unknown): void {
    this.#ids += 1
    const frame = { type, id: `i${this.#ids}`, timestamp: new Date().toISOString(), payload }
    this.#child.stdin?.write(`${JSON.stringify(frame)}\n`)
  }

  /** The first matching message that has not been returned before. */
  async next<T extends Heard['type']>(
    type: T,
    fits: (message: Extract<Heard, { type: T }>) => boolean = () => true,
  ) {
    const signal = AbortSignal.timeout(patience)
    for (;;) {
      const at = this.#heard.findIndex((message) => message.type === type && fits(message as never))
      if (at >= 0) return this.#heard.splice(at, 1)[0] as Extract<Heard, { type: T }>
      await once(this.#arrivals, 'line', { signal })
    }
  }

  /** The agent's result for an EXECUTE_SCRIPT. */
  async answer(payload: Partial<ExecuteScript>): Promise<ScriptComplete> {
    this.send('EXECUTE_SCRIPT', payload)
    return (await this.next('SCRIPT_COMPLETE', (message) => message.payload.taskId === payload.taskId))
      .payload
  }
}

const payloadOf = (frame: string) => (JSON.parse(frame) as { payload: ExecuteScript }).payload

test("S05 a program with the server's address and token, but without its key, cannot make an agent run anything", async (t) => {
  const server = await startServerProcess(t)
  const tap = await tapServer(t, () => server.url)
  const dataDir = await temporaryDirectory(t)
  const outcome = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const startAgent = () => agentProcess(t, { url: `http://127.0.0.1:${tap.port}` }, dataDir, { enrollToken })
  let agent = await startAgent()
  const identity = JSON.parse(readFileSync(join(dataDir, 'identity.json'), 'utf8')) as {
    agentId: string
    registration: { hostId: number; keyId: string }
  }
  const { agentId, registration } = identity
  const { hostId, keyId } = registration
  const run = (name: string) =>
    startTask(server, [hostId], {
      script: { content: `echo ${name} >> ${outcome}/${name}` },
      params: { A: '1' },
      queueSeconds: 600,
      timeout: 600,
    })
  const lines = (name: string) => readFileSync(join(outcome, name), 'utf8').split('\n').length - 1

  // One message that arrived and ran, one caught in transit, one for another agent.
  t.is((await finished(server, await run('ran'))).status, 'SUCCESS')
  const ran = payloadOf(tap.executions[0] ?? '')
  const keeping = tap.keepNext()
  const caughtTask = await run('caught')
  const caught = payloadOf(await keeping)
  // The agent's next link must not deliver it either.
  await tap.close()
  t.is(caught.taskId, caughtTask)
  const other = await server.enroll('other')
  const otherLink = await ScriptedAgent.link(server, other)
  const otherTask = await startTask(server, [other.hostId], { script: { content: `touch ${outcome}/evil` } })
  const foreign = await otherLink.execution(otherTask)
  otherLink.complete(otherTask, 0, { lastSequence: -1 })
  await otherLink.released(otherTask)
  await otherLink.cut()
  await kill(agent, 'SIGTERM')
  await server.kill()

  const impostor = new Impostor(
    t,
    tap.port,
    new Date(Date.parse(caught.expiry ?? '') - 240_000).toISOString(),
  )
  await impostor.next('READY')
  agent = await startAgent()
  const hello = await impostor.next('AGENT_HELLO')
  const evil = `touch ${outcome}/evil`
  const stolen = generateKeyPairSync('ed25519').privateKey
  const signedByAnother = (payload: ExecuteScript) => ({
    ...payload,
    signature: sign(null, signedBytes('EXECUTE_SCRIPT', agentId, payload), stolen).toString('base64'),
  })
  const { signature: _, ...unsigned } = caught
  const own = { ...caught, taskId: 'own', script: evil, linkId: hello.payload.linkId ?? '' }
  const refused: readonly (readonly [what: string, payload: Partial<ExecuteScript>, says: RegExp])[] = [
    ['unchanged', caught, /^signature is for another link/],
    ['for another agent', foreign, /^signature does not verify/],
    ['unsigned', unsigned, /^signature missing/],
    ['with an empty signature', { ...caught, signature: '' }, /^signature missing/],
    ['with junk for a signature', { ...caught, signature: 'AAAA' }, /^signature does not verify/],
    ['signed with another key', signedByAnother(own), /^signature does not verify/],
    [
      'signed with a key of its own',
      signedByAnother({ ...own, keyId: 'mine' }),
      /^signature by the key mine/,
    ],
    ['with another script', { ...caught, script: evil }, /^signature does not verify/],
    ['with another parameter', { ...caught, params: { A: '2' } }, /^signature does not verify/],
    [
      'with an additional parameter',
      { ...caught, params: { ...caught.params, B: '2' } },
      /^signature does not verify/,
    ],
    ['as another user', { ...caught, runAs: 'nobody' }, /^signature does not verify/],
    ['with another timeout', { ...caught, timeout: 0 }, /^signature does not verify/],
    ['with a limit', { ...caught, limits: { memoryMB: 1 } }, /^signature does not verify/],
    ['in another directory', { ...caught, workDir: '/' }, /^signature does not verify/],
    ['of another type', { ...caught, scriptType: 'PYTHON' }, /^signature does not verify/],
    ['with more output', { ...caught, maxOutputBytes: 1 }, /^signature does not verify/],
    ['as another task', { ...caught, taskId: 'another' }, /^signature does not verify/],
    ['valid for longer', { ...caught, expiry: '2999-01-01T00:00:00.000Z' }, /^signature does not verify/],
    ['for this link', { ...caught, linkId: hello.payload.linkId ?? '' }, /^signature does not verify/],
    ['one that ran, as another task', { ...ran, taskId: 'again' }, /^signature does not verify/],
  ]
  t.is(caught.keyId, keyId)
  for (const [what, payload, says] of refused) {
    const answer = await impostor.answer(payload)
    t.like(answer, { exitCode: 126, status: 'FAILED', lastSequence: -1 }, what)
    t.regex(answer.error ?? '', says, what)
  }
  t.is((await impostor.answer(ran)).exitCode, 0, 'the known result of an earlier execution is reported again')
  impostor.send('TERMINAL_OPEN', {
    sessionId: 's1',
    cols: 80,
    rows: 24,
    shell: '/bin/sh',
    expiry: caught.expiry,
    signature: caught.signature,
    keyId,
  })
  impostor.send('TERMINAL_INPUT', { sessionId: 's1', data: `${evil}\n` })
  await impostor.next('TERMINAL_CLOSED')
  impostor.send('SCRIPT_ACK', { taskId: 'unknown', sequence: 2 ** 53 - 1 })
  impostor.send('SCRIPT_ACK', { taskId: caughtTask, complete: true })
  impostor.send('PROBE', {})
  await impostor.next('ERROR')
  t.false(existsSync(join(outcome, 'evil')))
  t.false(existsSync(join(outcome, 'caught')))
  t.is(lines('ran'), 1)

  await impostor.end()
  await tap.open()
  await server.start()
  const ended = await finished(server, caughtTask)
  t.like(ended.results[0], { status: 'LOST' }, 'it may be sent only to the process that it was first sent to')
  t.false(existsSync(join(outcome, 'caught')))
  t.is((await finished(server, await run('after'))).status, 'SUCCESS', 'orders of the real server still run')
  t.is(lines('after'), 1)
  t.is(lines('ran'), 1)
  t.false(existsSync(join(outcome, 'evil')))
  const { content } = await server.data('GET', '/api/audit?action=agent.distrust')
  const told = content as AuditEntry[]
  t.true(told.length >= 16, `${told.length} entries`)
  t.true(told.every(({ actor, outcome: end }) => actor.id === agentId && end === 'REFUSED'))
  t.true(told.some(({ detail }) => String(detail['message']).includes('EXECUTE_SCRIPT own')))
  await kill(agent, 'SIGTERM')
})
