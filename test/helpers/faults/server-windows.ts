import { existsSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { type RunningAgent, startAgent } from '../../../src/agent/main.ts'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import type { TaskResult } from '../../../src/core/tasks/task.ts'
import { agentOptions, temporaryDirectory } from '../agents/agent.ts'
import { ScriptedAgent } from '../agents/scripted-agent.ts'
import { followThrough } from '../chaos/follower.ts'
import { entries } from '../clients/tasks.ts'
import { countStart, startsIn } from '../servers/linked-pair.ts'
import type { Answer, TestServer } from '../servers/server.ts'
import type { Fault, Hold } from './fault.ts'

export type ServerPoint = Extract<FaultPoint, `server.${string}`>

interface Window {
  life: (site: Site) => Promise<Task>
  nth?: number
  starts?: number
  results?: Partial<TaskResult>[]
  stdout?: string
  /** The task's owner reaches the point, whichever server has the links. */
  isOfPlan?: true
}

/** A server with a fault, and the paths that its hosts and scripts use. */
export interface Site {
  t: ExecutionContext
  /** The server as clients reach it, also after the crash. */
  server: TestServer
  /** The server as agents reach it. */
  links: TestServer
  faulty: TestServer
  /** Settles after the crash, when a server is up again. */
  crashed: () => Promise<void>
  /** Called with the task as soon as a client knows of it. */
  asked?: (taskId: string) => void
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

/** The name is unique because sites may share a store. */
const hostOf = ({ traces }: Site, name: string) => `${name}-${basename(traces).slice(-6).toLowerCase()}`

/** A host with a real agent, which keeps running over every restart of the server. */
async function newHost(site: Site, name = 'web1'): Promise<Host> {
  const { t, server, links } = site
  const hostname = hostOf(site, name)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const dataDir = await temporaryDirectory(t)
  const start = async () => {
    const agent = await startAgent({
      ...agentOptions(links, dataDir),
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

/** Sends a request to the server with the fault, or to its replacement; null if there is no answer. */
async function api({ faulty, server, traces }: Site, path: string, body?: unknown): Promise<Answer | null> {
  for (const one of [faulty, server])
    try {
      return await one.api('POST', path, body, { 'idempotency-key': traces })
    } catch {
      // The server is being killed.
    }
  return null
}

const finished = ({ server }: Site, taskId: string) =>
  followThrough(server, taskId, { entries: [], resumed: 0 })

/** Created right before the first request, so that earlier visits of a fault point do not count. */
export const askedFile = (gate: string): string => `${gate}.asked`

/** Repeats one request until the server accepts it, as a client does that wants one task. */
async function ask(site: Site, hostIds: number[], content: string, options = {}): Promise<string> {
  const body = { script: { content }, target: { hostIds }, timeout: 120, ...options }
  // The server's work for a new link is done by then.
  await delay(300)
  writeFileSync(askedFile(site.gate), '')
  for (;;) {
    const answer = await api(site, '/api/tasks', body)
    if (answer?.status === 200) {
      const { taskId } = answer.body.data
      site.asked?.(taskId)
      return taskId
    }
    await delay(100)
  }
}

/** Makes the request, lives through the crash and waits for the end; the client repeats unanswered requests. */
async function lives(site: Site, hostIds: number[], content: string, options = {}): Promise<Task> {
  const [taskId] = await Promise.all([ask(site, hostIds, content, options), site.crashed()])
  return finished(site, taskId)
}

async function plain(site: Site): Promise<Task> {
  const { hostId } = await linkedHost(site)
  // Right after the restart, the host is not linked yet.
  return lives(site, [hostId], script(site), { queueSeconds: 100 })
}

/** The turn of the second host comes while it is offline. */
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
  const { id } = await site.server.data('POST', '/api/hosts', {
    hostname: hostOf(site, 'never'),
    ip: '127.0.0.1',
  })
  return lives(site, [id], script(site), { queueSeconds: 0 })
}

/** Waits until the server has the first line of a script: acknowledged output outlasts the agent's journal. */
async function hasFirstLine({ server }: Site, taskId: string): Promise<void> {
  while (!(await entries(server, taskId)).some(({ data }) => data.includes('one'))) await delay(20)
}

/** The agent returns to a running script; `before` changes something before its HELLO. */
async function agentReturns(
  site: Site,
  before: (host: Host) => Promise<void> = async () => {},
): Promise<Task> {
  const host = await linkedHost(site)
  const taskId = await ask(site, [host.hostId], script(site, untilGate(site)))
  await hasFirstLine(site, taskId)
  await host.agent.stop()
  await before(host)
  const [agent] = await Promise.all([host.start(), site.crashed()])
  while (!agent.linked()) await delay(20)
  writeFileSync(site.gate, '')
  return finished(site, taskId)
}

const journalLost = (site: Site) => agentReturns(site, ({ dataDir }) => rm(join(dataDir, 'journal')))

async function stopsAtFailure(site: Site): Promise<Task> {
  const { hostId } = await linkedHost(site)
  const { id } = await site.server.data('POST', '/api/hosts', {
    hostname: hostOf(site, 'second'),
    ip: '127.0.0.1',
  })
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
  await hasFirstLine(site, taskId)
  const cancel = async () => {
    for (;;) {
      const answer = await api(site, `/api/tasks/${taskId}/cancel`)
      if (answer?.status === 200 || answer?.status === 409) return
      await delay(100)
    }
  }
  await Promise.all([cancel(), site.crashed()])
  return finished(site, taskId)
}

/** The link closes at the moment when "sent" is written, so the frame never leaves. */
async function returned(site: Site): Promise<Task> {
  const { server, gate } = site
  const identity = await server.enroll(hostOf(site, 'web1'))
  // A proxy in between would report the cut later.
  const agent = await ScriptedAgent.link(site.faulty, identity)
  const asking = ask(site, [identity.hostId], 'true', { queueSeconds: 100 })
  while (!existsSync(`${gate}.held`)) await delay(20)
  await agent.cut()
  writeFileSync(gate, '')
  await site.crashed()
  const again = await ScriptedAgent.link(server, identity)
  const taskId = await asking
  await again.execution(taskId)
  again.complete(taskId, 3, { lastSequence: -1 })
  const ended = await finished(site, taskId)
  const executions = [...agent.heard, ...again.heard].filter(({ type }) => type === 'EXECUTE_SCRIPT')
  site.t.is(executions.length, 1)
  return ended
}

/** An agent that reports a script as unknown, and later how it ended. */
async function late(site: Site): Promise<Task> {
  const { server } = site
  const identity = await server.enroll(hostOf(site, 'web1'))
  const first = await ScriptedAgent.link(server, identity)
  const taskId = await ask(site, [identity.hostId], 'true')
  await first.execution(taskId)
  await first.cut()
  const changed = await ScriptedAgent.link(server, identity, { storeId: 'another' })
  await finished(site, taskId)
  changed.complete(taskId, 4, { lastSequence: -1 })
  await site.crashed()
  const tasks = [{ taskId, state: 'EXITED', lastSequence: -1 } as const]
  const again = await ScriptedAgent.link(server, identity, { storeId: 'another', tasks })
  await again.next('SCRIPT_ACK')
  again.complete(taskId, 4, { lastSequence: -1 })
  await again.released(taskId)
  return server.data('GET', `/api/tasks/${taskId}`)
}

const isOfPlan = true as const
const lost: Partial<TaskResult> = { status: 'LOST', exitCode: null, outputComplete: false }
const twice = { starts: 2, results: [ran, ran], stdout: 'one\ntwo\none\ntwo\n' }
const skipped = {
  isOfPlan,
  life: stopsAtFailure,
  results: [ran, { status: 'SKIPPED', exitCode: null } as const],
}
const cancelled = {
  isOfPlan,
  life: cancels,
  stdout: 'one\n',
  results: [{ status: 'CANCELLED', exitCode: 143, lateResult: null } as const],
}
const scripted = { starts: 0, stdout: '' }
export const windows: Record<ServerPoint, Window> = {
  'server.created.before': { isOfPlan, life: plain },
  'server.created.after': { isOfPlan, life: plain },
  'server.turn.before': { isOfPlan, life: away, ...twice },
  'server.turn.after': { isOfPlan, life: away, ...twice },
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
  // Under load one write takes all pending output.
  'server.output.written': { life: plain },
  'server.output.after': { life: plain, nth: 2 },
  'server.cancelled.before': cancelled,
  'server.cancelled.after': cancelled,
  'server.settled.before': { life: plain },
  'server.settled.after': { life: plain },
  'server.paused.before': { isOfPlan, life: pauses, ...twice },
  'server.paused.after': { isOfPlan, life: pauses, ...twice },
  'server.skipped.before': skipped,
  'server.skipped.after': skipped,
  'server.archived.before': { isOfPlan, life: plain },
  'server.archived.after': { isOfPlan, life: plain },
  'server.final.before': { isOfPlan, life: plain },
  'server.final.after': { isOfPlan, life: plain },
  'server.late.before': { life: late, ...scripted, results: [{ ...lost, exitCode: null }] },
  'server.late.after': { life: late, ...scripted, results: [{ ...lost, exitCode: null }] },
}

/** A frame stays unsent only if the link closes at the right moment; no test can force that, so each may try again. */
export async function reached(point: ServerPoint, attempt: () => Promise<void>): Promise<void> {
  for (let left = point.startsWith('server.returned') ? 3 : 1; ; left -= 1)
    try {
      return await attempt()
    } catch (error) {
      if (left === 1 || !String(error).includes('did not reach its fault')) throw error
    }
}

export const toldOf = ({ starts = 1, results = [ran] }: Window): string =>
  `${starts} start, ${results.map(({ status }) => status).join(', ')}, output once`

/** The fault of a server in this window; `held`: the point at which a server waits while its frames must not leave. */
export function faultOf(
  point: ServerPoint,
  gate: string,
  held: FaultPoint = 'server.sent.before',
): { fault: Fault; hold?: Hold } {
  const fault: Fault = `${point}@${windows[point].nth ?? 1}`
  return point.startsWith('server.returned') ? { fault, hold: { point: held, gate } } : { fault }
}

export const stdoutOf = (output: readonly { hostId: number; stream: string; data: string }[]) =>
  output
    .toSorted((a, b) => a.hostId - b.hostId)
    .map(({ stream, data }) => (stream === 'stdout' ? data : ''))
    .join('')

/** Runs through a window and checks the expectations of the table; returns the task. */
export async function livesThrough(site: Site, point: ServerPoint): Promise<Task> {
  const { t, server, traces } = site
  const { life, starts = 1, results = [ran], stdout = 'one\ntwo\n' } = windows[point]
  const tasksBefore = (await server.data('GET', '/api/tasks')).totalElements
  const ended = await life(site)
  for (const [at, expected] of results.entries()) t.like(ended.results[at], expected)
  t.is(await startsIn(traces), starts)
  if (point.startsWith('server.late')) t.is(ended.results[0]?.lateResult?.exitCode, 4)
  t.is(stdoutOf(await entries(server, ended.taskId)), stdout)
  // Nothing is left to start, and nothing started twice.
  t.is((await server.data('GET', '/api/tasks')).totalElements, tasksBefore + 1)
  return ended
}
