import { existsSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { type RunningAgent, startAgent } from '../../../src/agent/main.ts'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import type { TaskResult } from '../../../src/core/task/task.ts'
import { agentOptions, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { entries, finished } from '../../helpers/clients/tasks.ts'
import type { Fault } from '../../helpers/faults/fault.ts'
import { countStart, startsIn } from '../../helpers/servers/linked-pair.ts'
import { type ServerProcess, startServerProcess } from '../../helpers/servers/server-process.ts'
import { turns } from '../../helpers/turns.ts'

type ServerPoint = Extract<FaultPoint, `server.${string}`>

interface Window {
  life: (site: Site) => Promise<Task>
  nth?: number
  starts?: number
  results?: Partial<TaskResult>[]
  stdout?: string
}

/** A server with a fault, and where its hosts and scripts keep what is theirs. */
interface Site {
  t: ExecutionContext
  server: ServerProcess
  traces: string
  gate: string
}

const ran: Partial<TaskResult> = { status: 'FAILED', exitCode: 3, outputComplete: true, lateResult: null }
const script = ({ traces }: Site, between = 'sleep 0.2') =>
  `${countStart(traces)}; echo one; echo uno >&2; ${between}; echo two; echo dos >&2; exit 3`
const untilGate = ({ traces, gate }: Site) =>
  `until [ -e ${gate} ] || [ ! -d ${traces} ]; do sleep 0.05; done`

interface Host {
  hostId: number
  start: () => Promise<RunningAgent>
  dataDir: string
}

/** A host with a real agent, which goes on over every restart of the server. */
async function newHost({ t, server }: Site, hostname = 'web1'): Promise<Host> {
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const dataDir = await temporaryDirectory(t)
  const start = async () => {
    const agent = await startAgent({
      ...agentOptions(server, dataDir),
      enrollToken,
      hostname,
      agentId: `agent-${hostname}`,
    })
    t.teardown(() => agent.stop())
    while (!agent.linked()) await delay(20)
    return agent
  }
  return { hostId: 0, start, dataDir }
}

async function linkedHost(site: Site, hostname = 'web1'): Promise<Host & { agent: RunningAgent }> {
  const host = await newHost(site, hostname)
  const agent = await host.start()
  return { ...host, agent, hostId: agent.hostId ?? 0 }
}

/** Sends the same request until the server has taken it, as a client that means it once. */
async function ask({ server }: Site, hostIds: number[], content: string, options = {}): Promise<string> {
  const body = { script: { content }, target: { hostIds }, timeout: 120, ...options }
  for (;;) {
    const answer = await server
      .api('POST', '/api/tasks', body, { 'idempotency-key': 'once' })
      .catch(() => null)
    if (answer?.status === 200) return answer.body.data.taskId
    await delay(100)
  }
}

async function crashAndReturn({ server }: Site): Promise<void> {
  await server.crashed()
  await server.start()
}

/** The request, the crash wherever it comes, and the end: the client repeats what was not answered. */
async function lives(site: Site, hostIds: number[], content: string, options = {}): Promise<Task> {
  const [taskId] = await Promise.all([ask(site, hostIds, content, options), crashAndReturn(site)])
  return finished(site.server, taskId)
}

async function plain(site: Site): Promise<Task> {
  const { hostId } = await linkedHost(site)
  // A client that asks right after the restart finds the host not yet back.
  return lives(site, [hostId], script(site), { queueSeconds: 100 })
}

/** The turn of the second host has come, which is away. */
async function away(site: Site): Promise<Task> {
  const [first, second] = [await linkedHost(site), await linkedHost(site, 'web2')]
  await second.agent.stop()
  const options = { strategy: 'SEQUENTIAL', maxFailures: 2, queueSeconds: 100 }
  const ending = lives(site, [first.hostId, second.hostId], script(site), options)
  await delay(3000)
  await second.start()
  return ending
}

async function unreachable(site: Site): Promise<Task> {
  const { id } = await site.server.data('POST', '/api/hosts', { hostname: 'never', ip: '127.0.0.1' })
  return lives(site, [id], script(site), { queueSeconds: 0 })
}

/** The agent comes back to a script that runs: `before` it says HELLO something may happen to it. */
async function agentReturns(
  site: Site,
  before: (host: Host) => Promise<void> = async () => {},
): Promise<Task> {
  const host = await linkedHost(site)
  const taskId = await ask(site, [host.hostId], script(site, untilGate(site)))
  while ((await startsIn(site.traces)) === 0) await delay(20)
  await host.agent.stop()
  await before(host)
  const [agent] = await Promise.all([host.start(), crashAndReturn(site)])
  while (!agent.linked()) await delay(20)
  writeFileSync(site.gate, '')
  return finished(site.server, taskId)
}

const journalLost = (site: Site) => agentReturns(site, ({ dataDir }) => rm(join(dataDir, 'journal')))

async function stopsAtFailure(site: Site): Promise<Task> {
  const { hostId } = await linkedHost(site)
  const { id } = await site.server.data('POST', '/api/hosts', { hostname: 'second', ip: '127.0.0.1' })
  return lives(site, [hostId, id], script(site), { strategy: 'SEQUENTIAL' })
}

async function pauses(site: Site): Promise<Task> {
  const hosts = [await linkedHost(site), await linkedHost(site, 'web2')]
  const options = { strategy: 'ROLLING', batchSize: 1, pauseSeconds: 2, maxFailures: 2 }
  return lives(
    site,
    hosts.map(({ hostId }) => hostId),
    script(site),
    options,
  )
}

async function cancels(site: Site): Promise<Task> {
  const { hostId } = await linkedHost(site)
  const taskId = await ask(site, [hostId], `${countStart(site.traces)}; echo one; sleep 600`)
  while ((await startsIn(site.traces)) === 0) await delay(20)
  const cancel = async () => {
    for (;;) {
      const answer = await site.server.api('POST', `/api/tasks/${taskId}/cancel`).catch(() => null)
      if (answer?.status === 200 || answer?.status === 409) return
      await delay(100)
    }
  }
  await Promise.all([cancel(), crashAndReturn(site)])
  return finished(site.server, taskId)
}

/** The link goes in the moment in which "sent" is written: the frame never leaves. */
async function returned(site: Site): Promise<Task> {
  const { server, gate } = site
  const identity = await server.enroll('web1')
  const agent = await ScriptedAgent.link(server, identity)
  const asking = ask(site, [identity.hostId], 'true', { queueSeconds: 100 })
  while (!existsSync(`${gate}.held`)) await delay(20)
  await agent.cut()
  writeFileSync(gate, '')
  await crashAndReturn(site)
  const again = await ScriptedAgent.link(server, identity)
  const taskId = await asking
  await again.execution(taskId)
  again.complete(taskId, 3, { lastSequence: -1 })
  const ended = await finished(server, taskId)
  const executions = [...agent.heard, ...again.heard].filter(({ type }) => type === 'EXECUTE_SCRIPT')
  site.t.is(executions.length, 1)
  return ended
}

/** An agent that says it knows nothing of a script, and later how it ended. */
async function late(site: Site): Promise<Task> {
  const { server } = site
  const identity = await server.enroll('web1')
  const first = await ScriptedAgent.link(server, identity)
  const taskId = await ask(site, [identity.hostId], 'true')
  await first.execution(taskId)
  await first.cut()
  const changed = await ScriptedAgent.link(server, identity, { storeId: 'another' })
  await finished(server, taskId)
  changed.complete(taskId, 4, { lastSequence: -1 })
  await crashAndReturn(site)
  const tasks = [{ taskId, state: 'EXITED', lastSequence: -1 } as const]
  const again = await ScriptedAgent.link(server, identity, { storeId: 'another', tasks })
  await again.next('SCRIPT_ACK')
  again.complete(taskId, 4, { lastSequence: -1 })
  await again.released(taskId)
  return server.data('GET', `/api/tasks/${taskId}`)
}

const lost: Partial<TaskResult> = { status: 'LOST', exitCode: null, outputComplete: false }
const twice = { starts: 2, results: [ran, ran], stdout: 'one\ntwo\none\ntwo\n' }
const skipped = { life: stopsAtFailure, results: [ran, { status: 'SKIPPED', exitCode: null } as const] }
const cancelled = {
  life: cancels,
  stdout: 'one\n',
  results: [{ status: 'CANCELLED', exitCode: 143, lateResult: null } as const],
}
const scripted = { starts: 0, stdout: '' }
const windows: Record<ServerPoint, Window> = {
  'server.created.before': { life: plain },
  'server.created.after': { life: plain },
  'server.turn.before': { life: away, ...twice },
  'server.turn.after': { life: away, ...twice },
  'server.unreachable.before': { life: unreachable, ...scripted, results: [{ status: 'UNREACHABLE' }] },
  'server.unreachable.after': { life: unreachable, ...scripted, results: [{ status: 'UNREACHABLE' }] },
  'server.sent.before': { life: plain },
  'server.sent.after': { life: plain },
  'server.frame.after': { life: plain },
  'server.returned.before': { life: returned, ...scripted, results: [ran] },
  'server.returned.after': { life: returned, ...scripted, results: [ran] },
  'server.named.before': { life: agentReturns },
  'server.named.after': { life: agentReturns },
  'server.lost.before': { life: journalLost, results: [lost], stdout: 'one\n' },
  'server.lost.after': { life: journalLost, results: [lost], stdout: 'one\n' },
  'server.output.before': { life: plain, nth: 2 },
  // Under load one write takes all there is.
  'server.output.written': { life: plain },
  'server.output.after': { life: plain, nth: 2 },
  'server.cancelled.before': cancelled,
  'server.cancelled.after': cancelled,
  'server.settled.before': { life: plain },
  'server.settled.after': { life: plain },
  'server.paused.before': { life: pauses, ...twice },
  'server.paused.after': { life: pauses, ...twice },
  'server.skipped.before': skipped,
  'server.skipped.after': skipped,
  'server.archived.before': { life: plain },
  'server.archived.after': { life: plain },
  'server.final.before': { life: plain },
  'server.final.after': { life: plain },
  'server.late.before': { life: late, ...scripted, results: [{ ...lost, exitCode: null }] },
  'server.late.after': { life: late, ...scripted, results: [{ ...lost, exitCode: null }] },
}

/** A frame that did not leave is what a link that goes at the right moment makes; no test can force it, so each may try again. */
async function reached(point: ServerPoint, attempt: () => Promise<void>): Promise<void> {
  for (let left = point.startsWith('server.returned') ? 3 : 1; ; left -= 1)
    try {
      return await attempt()
    } catch (error) {
      if (left === 1 || !String(error).includes('did not come to its fault')) throw error
    }
}

const turn = turns(4)
for (const [point, window] of Object.entries(windows) as [ServerPoint, Window][]) {
  const { starts = 1, results = [ran], stdout = 'one\ntwo\n', nth = 1 } = window
  const told = results.map(({ status }) => status).join(', ')
  test(`F07 a server that is killed at ${point}: ${starts} start, ${told}, whatever was written once`, (t) =>
    turn(() =>
      reached(point, async () => {
        const traces = await temporaryDirectory(t)
        const gate = join(traces, 'gate')
        const fault: Fault = `${point}@${nth}`
        const hold = point.startsWith('server.returned')
          ? { point: 'server.sent.before' as const, gate }
          : null
        const server = await startServerProcess(t, { fault, ...(hold && { hold }) })
        const ended = await window.life({ t, server, traces, gate })
        for (const [at, expected] of results.entries()) t.like(ended.results[at], expected)
        t.is(await startsIn(traces), starts)
        if (point.startsWith('server.late')) t.is(ended.results[0]?.lateResult?.exitCode, 4)
        const output = await entries(server, ended.taskId)
        const texts = output.toSorted((a, b) => a.hostId - b.hostId)
        t.is(texts.map(({ stream, data }) => (stream === 'stdout' ? data : '')).join(''), stdout)
        // Nothing is left in the way of the next task, and none started twice.
        const { content } = await server.data('GET', '/api/tasks')
        t.is(content.length, 1)
      }),
    ))
}
