import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { holds } from '../../helpers/agents/copying-agent.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { FileRoutes } from '../../helpers/servers/file-routes.ts'
import { until } from '../../helpers/until.ts'

const agentId = 'copying'
const bytes = Buffer.alloc(3_000_000, 'files of rsm ')
const names = (directory: string) => readdirSync(directory).sort()
const partIn = (directory: string) => names(directory).find((name) => /^\.rsm-half-\d+\.part$/.test(name))

/** A copy that has come half its way, at which the server holds it. */
async function halfway(t: ExecutionContext, timeout = 60) {
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const dataDir = await temporaryDirectory(t)
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'file')
  writeFileSync(path, 'old')
  const fileRoutes = new FileRoutes(server)
  let release = () => {}
  fileRoutes.fault = (request, response, nth) => {
    const asked = fileRoutes.asked(request)
    if (nth > 1 || asked === null) return false
    const half = asked.bytes.length / 2
    response.writeHead(200).write(asked.bytes.subarray(0, half))
    release = () => void response.end(asked.bytes.subarray(half))
    return true
  }
  const agent = await agentProcess(t, server, dataDir, { agentId })
  await server.linked()
  const copy = { file: fileRoutes.put('f1', bytes), path, kind: 'FILE' as const }
  server.order('COPY_FILE', agentId, { taskId: 'half', copy, timeout })
  await until('half of it is written', () => {
    const part = partIn(directory)
    return part !== undefined && readFileSync(join(directory, part)).length >= 1024 ** 2
  })
  return { server, fileRoutes, agent, dataDir, directory, path, release: () => release() }
}

/** The process that carries it out: it holds the notes of its temporary files open. */
function workerOf(dataDir: string): number {
  const notes = join(dataDir, 'executions/half/parts')
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
      if (open.includes(notes)) return Number(pid)
    } catch {
      // It has just ended, or is another user's.
    }
  throw new Error('no process carries the copy out')
}

test('P54 an agent that is killed in mid-copy: it goes on, and at no moment the target holds a part', async (t) => {
  const { server, agent, dataDir, directory, path, release } = await halfway(t)
  await kill(agent, 'SIGKILL')
  t.is(readFileSync(path, 'utf8'), 'old')
  await agentProcess(t, server, dataDir, { agentId })
  await server.linked(2)
  t.like(server.hellos[1]?.tasks, [{ taskId: 'half', state: 'RUNNING' }])
  release()
  t.like(await server.completed('half'), { status: 'SUCCESS', changed: true, error: null })
  t.true(readFileSync(path).equals(bytes))
  holds(t, directory, 'file')
})

test('a copy that ends while its agent is away: the next one tells how', async (t) => {
  const { server, agent, dataDir, directory, path, release } = await halfway(t)
  await kill(agent, 'SIGKILL')
  release()
  await until('it is replaced', () => readFileSync(path).equals(bytes))
  holds(t, directory, 'file')
  await agentProcess(t, server, dataDir, { agentId })
  t.like(await server.completed('half'), { status: 'SUCCESS', exitCode: 0, changed: true })
})

test('a server that is away in mid-copy is waited for', async (t) => {
  const { server, fileRoutes, directory, path } = await halfway(t)
  const { port } = server
  await server.close()
  const next = await FakeServer.start(port)
  t.teardown(() => next.close())
  const again = new FileRoutes(next)
  again.files.set('f1', bytes)
  await until('it is replaced', () => readFileSync(path).equals(bytes))
  t.regex(again.requests[0]?.range ?? '', /^bytes=1\d{6}-$/)
  t.is(fileRoutes.requests.length, 1)
  await until('nothing else is left', () => names(directory).length === 1)
})

test('a cancel in mid-copy leaves the old file and nothing else', async (t) => {
  const { server, directory, path } = await halfway(t)
  server.send('CANCEL_SCRIPT', { taskId: 'half' })
  const complete = await server.completed('half')
  t.is(complete.status, 'CANCELLED')
  t.false('changed' in complete)
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a copy that has lost its leave and is killed: its temporary file goes all the same', async (t) => {
  const { server, dataDir, directory, path } = await halfway(t)
  // As of one that is cancelled, and that TERM does not end within 5 s.
  rmSync(join(dataDir, 'executions/half/leave'))
  process.kill(workerOf(dataDir), 'SIGKILL')
  t.is((await server.completed('half')).status, 'FAILED')
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a copy ends by itself where its agent is gone, and the directory of its order', async (t) => {
  const { server, agent, dataDir, directory, path } = await halfway(t)
  const worker = workerOf(dataDir)
  await kill(agent, 'SIGKILL')
  rmSync(join(dataDir, 'executions/half'), { recursive: true })
  await server.close()
  await until('its process has ended', () => !existsSync(`/proc/${worker}`))
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a copy whose time is over leaves the old file and nothing else', async (t) => {
  const { server, directory, path } = await halfway(t, 10)
  t.is((await server.completed('half')).status, 'TIMEOUT')
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a copy whose process is killed: its temporary file goes all the same', async (t) => {
  const { server, dataDir, directory, path } = await halfway(t)
  process.kill(workerOf(dataDir), 'SIGKILL')
  const complete = await server.completed('half')
  t.like(complete, { status: 'FAILED', exitCode: 137 })
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('what a dead copy has left is removed at the start of the agent', async (t) => {
  const { server, agent, dataDir, directory, path } = await halfway(t)
  const worker = workerOf(dataDir)
  await kill(agent, 'SIGKILL')
  process.kill(worker, 'SIGKILL')
  t.deepEqual(names(directory), [partIn(directory), 'file'])
  await agentProcess(t, server, dataDir, { agentId })
  t.is((await server.completed('half')).status, 'FAILED')
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a restart of the host in mid-copy: LOST, and what was left is removed', async (t) => {
  const { server, agent, dataDir, directory } = await halfway(t)
  const worker = workerOf(dataDir)
  const wrapper = Number(/\) \S (\d+) /.exec(readFileSync(`/proc/${worker}/stat`, 'latin1'))?.[1])
  await kill(agent, 'SIGKILL')
  for (const pid of [wrapper, worker]) process.kill(pid, 'SIGKILL')
  await agentProcess(t, server, dataDir, { agentId, bootId: 'another-boot' })
  t.is((await server.completed('half')).status, 'LOST')
  holds(t, directory, 'file')
})
