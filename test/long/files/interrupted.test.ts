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

/** A copy whose download the server holds after half of the file. */
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
  await until('half of the file is written', () => {
    const part = partIn(directory)
    return part !== undefined && readFileSync(join(directory, part)).length >= 1024 ** 2
  })
  return { server, fileRoutes, agent, dataDir, directory, path, release: () => release() }
}

/** The process that carries out the order: it keeps the list of its temporary files open. */
function workerOf(dataDir: string): number {
  const notes = join(dataDir, 'executions/half/parts')
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
      if (open.includes(notes)) return Number(pid)
    } catch {
      // The process has just ended or belongs to another user.
    }
  throw new Error('no process carries out the copy')
}

test('P54 a copy whose agent is killed continues, and the target never holds a partial file', async (t) => {
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

test('the next agent reports a copy that ended while no agent ran', async (t) => {
  const { server, agent, dataDir, directory, path, release } = await halfway(t)
  await kill(agent, 'SIGKILL')
  release()
  await until('the file is replaced', () => readFileSync(path).equals(bytes))
  holds(t, directory, 'file')
  await agentProcess(t, server, dataDir, { agentId })
  t.like(await server.completed('half'), { status: 'SUCCESS', exitCode: 0, changed: true })
})

test('a copy waits for a server that goes down during the download', async (t) => {
  const { server, fileRoutes, directory, path } = await halfway(t)
  const { port } = server
  await server.close()
  const next = await FakeServer.start(port)
  t.teardown(() => next.close())
  const again = new FileRoutes(next)
  again.files.set('f1', bytes)
  await until('the file is replaced', () => readFileSync(path).equals(bytes))
  t.regex(again.requests[0]?.range ?? '', /^bytes=1\d{6}-$/)
  t.is(fileRoutes.requests.length, 1)
  await until('the temporary file is gone', () => names(directory).length === 1)
})

test('a cancel during a copy leaves only the old file', async (t) => {
  const { server, directory, path } = await halfway(t)
  server.send('CANCEL_SCRIPT', { taskId: 'half' })
  const complete = await server.completed('half')
  t.is(complete.status, 'CANCELLED')
  t.false('changed' in complete)
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('the temporary file of a copy that is killed during its cancel is removed', async (t) => {
  const { server, dataDir, directory, path } = await halfway(t)
  // The state of a cancelled copy that TERM does not end within 5 s.
  rmSync(join(dataDir, 'executions/half/leave'))
  process.kill(workerOf(dataDir), 'SIGKILL')
  t.is((await server.completed('half')).status, 'FAILED')
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a copy ends once its agent and the directory of its order are gone', async (t) => {
  const { server, agent, dataDir, directory, path } = await halfway(t)
  const worker = workerOf(dataDir)
  await kill(agent, 'SIGKILL')
  rmSync(join(dataDir, 'executions/half'), { recursive: true })
  await server.close()
  await until('its process has ended', () => !existsSync(`/proc/${worker}`))
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('a copy that times out leaves only the old file', async (t) => {
  const { server, directory, path } = await halfway(t, 10)
  t.is((await server.completed('half')).status, 'TIMEOUT')
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('the temporary file of a killed copy is removed', async (t) => {
  const { server, dataDir, directory, path } = await halfway(t)
  process.kill(workerOf(dataDir), 'SIGKILL')
  const complete = await server.completed('half')
  t.like(complete, { status: 'FAILED', exitCode: 137 })
  t.is(readFileSync(path, 'utf8'), 'old')
  holds(t, directory, 'file')
})

test('an agent removes the temporary file of a dead copy when it starts', async (t) => {
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

test('a host restart during a copy makes it LOST, and its temporary file is removed', async (t) => {
  const { server, agent, dataDir, directory } = await halfway(t)
  const worker = workerOf(dataDir)
  const wrapper = Number(/\) \S (\d+) /.exec(readFileSync(`/proc/${worker}/stat`, 'latin1'))?.[1])
  await kill(agent, 'SIGKILL')
  for (const pid of [wrapper, worker]) process.kill(pid, 'SIGKILL')
  await agentProcess(t, server, dataDir, { agentId, bootId: 'another-boot' })
  t.is((await server.completed('half')).status, 'LOST')
  holds(t, directory, 'file')
})
