import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import type { AgentOptions } from '../../../src/agent/main.ts'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import type { Task } from '../../../src/core/protocol/http/tasks.ts'
import type { TaskResult } from '../../../src/core/tasks/task.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { entries, finished, running, startTask } from '../../helpers/clients/tasks.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { crashed, type Fault } from '../../helpers/faults/fault.ts'
import { countStart, startsIn, untilLinked } from '../../helpers/servers/linked-pair.ts'
import { startTestServer, type TestServer } from '../../helpers/servers/server.ts'
import { turns } from '../../helpers/turns.ts'

type AgentPoint = Extract<FaultPoint, `agent.${string}`>

/** Steps of an execution's life, and its result. */
interface Window {
  life: (host: Host, fault: Fault) => Promise<Told>
  /** Occurrence of the point that is hit; the first by default. */
  nth?: number
  starts?: 0 | 1
  status?: TaskResult['status']
  exitCode?: number | null
  error?: RegExp
  stdout?: (text: string) => boolean
}

/** The end as the server reports it. */
interface Told {
  taskId: string
  task: Task
}

/** A host of the shared server. Its agents run one after the other on one directory. */
interface Host {
  t: ExecutionContext
  server: TestServer
  hostId: number
  traces: string
  dataDir: string
  start(fault?: Fault | null, options?: Partial<AgentOptions>): ReturnType<typeof agentProcess>
}

const known = { stdout: 'one\ntwo\n', stderr: 'uno\ndos\n', exitCode: 3 }
const script = (traces: string, between = 'sleep 0.2') =>
  `${countStart(traces)}; echo one; echo uno >&2; ${between}; echo two; echo dos >&2; exit 3`
const untilGate = (traces: string) => `until [ -e ${traces}/gate ] || [ ! -d ${traces} ]; do sleep 0.05; done`
const openGate = ({ traces }: Host) => writeFileSync(join(traces, 'gate'), '')
const run = ({ server, hostId }: Host, content: string, options = {}) =>
  startTask(server, [hostId], { script: { content }, timeout: 120, queueSeconds: 60, ...options })
const told = async ({ server }: Host, taskId: string): Promise<Told> => ({
  taskId,
  task: await finished(server, taskId),
})

/** A script from start to end. */
async function plain(host: Host, fault: Fault, content = script(host.traces), options = {}): Promise<Told> {
  const first = await host.start(fault)
  await untilLinked(host)
  const taskId = await run(host, content, options)
  await crashed(first)
  await host.start()
  return told(host, taskId)
}

/** Two executions: the second reaches an agent that is stopping and starts no more, so it waits for the next agent. */
async function queued(host: Host, fault: Fault): Promise<Told> {
  const first = await host.start(fault, { drain: true })
  await untilLinked(host)
  const before = await run(host, `touch ${host.traces}/began; ${untilGate(host.traces)}`)
  while (!existsSync(join(host.traces, 'began'))) await delay(20)
  first.kill('SIGTERM')
  await delay(300)
  const taskId = await run(host, script(host.traces))
  await crashed(first)
  openGate(host)
  await host.start()
  host.t.is((await finished(host.server, before)).status, 'SUCCESS')
  return told(host, taskId)
}

async function cancelled(host: Host, fault: Fault): Promise<Told> {
  const first = await host.start(fault)
  await untilLinked(host)
  // The second process ignores TERM and outlives the script.
  const stubborn = `(trap '' TERM; echo $BASHPID > ${host.traces}/stubborn; while [ -d ${host.traces} ]; do sleep 0.1; done) &`
  const content = `${countStart(host.traces)}; ${stubborn} echo one; echo uno >&2; sleep 600`
  const taskId = await run(host, content)
  const { url, token } = host.server
  while (!(await entries(host.server, taskId)).some(({ data }) => data.includes('uno'))) await delay(50)
  await fetch(`${url}/api/tasks/${taskId}/cancel`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  })
  await crashed(first)
  await host.start()
  const end = await told(host, taskId)
  const stubbornPid = readFileSync(join(host.traces, 'stubborn'), 'utf8').trim()
  host.t.false(isAlive(stubbornPid), 'the process that ignores TERM is gone when the task is CANCELLED')
  return end
}

/** False also for zombies. */
function isAlive(pid: string): boolean {
  return existsSync(`/proc/${pid}`) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}

/** A cancel that reaches the agent before its execution, whose frame was lost in transit. */
async function overtaken(host: Host, fault: Fault): Promise<Told> {
  const path = await startCutLink(host.t, host.server.url)
  const first = await host.start(fault, { url: path.url })
  await untilLinked(host)
  const lost = path.cutAt('EXECUTE_SCRIPT', { deliver: false })
  const taskId = await run(host, script(host.traces))
  await lost
  path.freeze()
  await host.server.data('POST', `/api/tasks/${taskId}/cancel`)
  path.thaw()
  await crashed(first)
  await host.start()
  return told(host, taskId)
}

/** An agent that returns to a running script. */
async function returning(host: Host, fault: Fault): Promise<Told> {
  const first = await host.start()
  await untilLinked(host)
  const taskId = await run(host, script(host.traces, untilGate(host.traces)))
  await running(host.server, taskId)
  while ((await startsIn(host.traces)) === 0) await delay(20)
  await kill(first, 'SIGKILL')
  await crashed(await host.start(fault))
  openGate(host)
  await host.start()
  return told(host, taskId)
}

const much = `${Array.from({ length: 200_000 }, (_, at) => at + 1).join('\n')}\n`
const wordy = (host: Host, fault: Fault) =>
  plain(host, fault, `${countStart(host.traces)}; seq 1 200000; echo uno >&2; echo dos >&2; exit 3`)
const capped = (host: Host, fault: Fault) =>
  plain(host, fault, `${countStart(host.traces)}; seq 1 200000; echo uno >&2; echo dos >&2; exit 3`, {
    maxOutputBytes: 200_000,
  })
const isCut = (text: string) =>
  text.startsWith(much.slice(0, 100_000)) &&
  text.endsWith(much.slice(-30_000)) &&
  text.length < 210_000 &&
  text.split('[rsm: ').length === 2

/** A script that fails and its rollback: the request is on disk before the agent starts it. */
const gated = (host: Host, fault: Fault) =>
  plain(host, fault, script(host.traces), { rollback: { script: { content: 'true' } } })

const never = { starts: 0, stdout: (text: string) => text === '' } as const
/** The next agent does not have it or must not start it, and it is sent to no other process than the first. */
const lost = { ...never, status: 'LOST', exitCode: null } as const
const windows: Record<AgentPoint, Window> = {
  'agent.request.before': { life: queued, ...lost },
  'agent.request.after': { life: queued, ...lost },
  'agent.received.before': { life: queued, ...lost },
  'agent.received.after': { life: queued },
  'agent.gated.before': { life: gated, ...lost },
  'agent.gated.after': { life: gated },
  'agent.passed.before': { life: gated },
  'agent.passed.after': { life: gated },
  'agent.prepared.before': { life: plain, ...lost },
  'agent.prepared.after': { life: plain, ...lost },
  'agent.started.before': { life: plain, ...lost },
  'agent.started.after': { life: plain, ...lost },
  'agent.launch.before': { life: plain, ...lost },
  'agent.spawned.before': { life: plain, ...lost },
  'agent.spawned.after': { life: plain, ...lost },
  'agent.chunk.before': { life: plain, nth: 2 },
  'agent.chunk.after': { life: plain, nth: 2 },
  'agent.marker.after': { life: capped, stdout: isCut },
  'agent.cancelled.before': { life: overtaken, ...lost },
  'agent.cancelled.after': { life: overtaken, ...lost },
  'agent.ending.before': {
    life: cancelled,
    status: 'CANCELLED',
    exitCode: 143,
    stdout: (text) => text === 'one\n',
  },
  'agent.ending.after': {
    life: cancelled,
    status: 'CANCELLED',
    exitCode: 143,
    stdout: (text) => text === 'one\n',
  },
  'agent.ended.before': { life: plain },
  'agent.ended.after': { life: plain },
  'agent.acknowledged.before': { life: plain },
  'agent.acknowledged.after': { life: plain },
  'agent.removed.before': { life: wordy, stdout: (text) => text === much },
  'agent.removed.after': { life: wordy, stdout: (text) => text === much },
  'agent.compacted.before': { life: returning },
  'agent.compacted.after': { life: returning },
}

const endings: (() => unknown)[] = []
const shared = startTestServer({
  teardown: (ending: () => unknown) => endings.unshift(ending),
} as unknown as ExecutionContext)
test.after.always(async () => {
  for (const ending of endings) await ending()
})

async function newHost(t: ExecutionContext, hostname: string): Promise<Host> {
  const server = await shared
  const dataDir = await temporaryDirectory(t)
  const traces = await temporaryDirectory(t)
  const { token: enrollToken } = await server.data('POST', '/api/enrollment-tokens', {})
  const host: Host = {
    t,
    server,
    hostId: 0,
    traces,
    dataDir,
    async start(fault, options = {}) {
      const identity = { hostname, agentId: `agent-${hostname}`, enrollToken }
      const child = await agentProcess(t, server, dataDir, { ...identity, ...options }, fault)
      if (host.hostId === 0) {
        const { content } = await server.data('GET', `/api/hosts?search=${hostname}`)
        host.hostId = content[0].id
      }
      return child
    },
  }
  return host
}

const turn = turns(4)
for (const [number, [point, window]] of Object.entries(windows).entries()) {
  const { starts = 1, status = 'FAILED', exitCode = known.exitCode, error } = window
  test(`F08 an agent that is killed at ${point}: ${starts} start, ${status}, all output once`, (t) =>
    turn(async () => {
      const host = await newHost(t, `h${number}.test`)
      const { taskId, task } = await window.life(host, `${point as FaultPoint}@${window.nth ?? 1}`)
      const [result] = task.results
      t.is(await startsIn(host.traces), starts)
      t.is(result?.status, status)
      t.is(result?.exitCode, exitCode)
      t.is(result?.lateResult, null)
      t.is(result?.outputComplete, status !== 'LOST')
      if (error) t.regex(result?.error ?? '', error)
      const output = await entries(host.server, taskId)
      const textOf = (stream: string) =>
        output.map((entry) => (entry.stream === stream ? entry.data : '')).join('')
      t.true((window.stdout ?? ((text) => text === known.stdout))(textOf('stdout')))
      if (starts === 1 && status === 'FAILED') t.is(textOf('stderr'), known.stderr)
      // The host works: it takes the next execution, and has kept nothing of the ended one.
      const next = await startTask(host.server, [host.hostId], { script: { content: 'exit 0' } })
      t.is((await finished(host.server, next)).status, 'SUCCESS')
    }))
}
