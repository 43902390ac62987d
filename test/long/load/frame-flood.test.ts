import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { kill } from '../../helpers/agents/agent-process.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { startTask } from '../../helpers/clients/tasks.ts'
import { said } from '../../helpers/programs/said.ts'
import { adminLogin, restCaller, type TestServer } from '../../helpers/servers/server.ts'

const program = fileURLToPath(new URL('../../fixtures/server-process.js', import.meta.url))
const frames = 10_000

/** A server in a separate process with log level INFO, and its log lines. */
async function loggingServer(t: ExecutionContext) {
  const dataDir = await temporaryDirectory(t)
  const child = spawn(process.execPath, [program, dataDir, '0', 'INFO'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => kill(child, 'SIGKILL'))
  const lines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line))
  const url = (await said(child)).trim()
  const caller = { url, token: '' }
  const server = { ...caller, ...restCaller(() => caller) } as TestServer
  caller.token = (await server.data('POST', '/api/auth/login', adminLogin)).token
  const memory = async () => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
  }
  return { server, token: caller.token, lines, memory }
}

test('S10 10,000 bad frames of every sort add little to log, audit log and memory, and others are served', async (t) => {
  t.timeout(180_000)
  const { server, lines, memory } = await loggingServer(t)
  const second = await server.enroll('web2')
  const other = await ScriptedAgent.link(server, second)
  const otherTask = await startTask(server, [second.hostId])
  await other.execution(otherTask)
  const output = { taskId: otherTask, stream: 'stdout' as const, data: 'forged', sequence: 0 }
  const now = new Date().toISOString()
  const end = { exitCode: 126, duration: 0, startedAt: now, completedAt: now }
  const sorts: Record<string, (agent: ScriptedAgent) => void> = {
    'unknown types': (agent) => agent.send('NOSUCH' as never, {} as never),
    'malformed payloads': (agent) => agent.send('SCRIPT_OUTPUT', { taskId: '' } as never),
    'tasks of another host': (agent) => agent.send('SCRIPT_OUTPUT', output),
    'ends of another host': (agent) => agent.send('SCRIPT_COMPLETE', { taskId: otherTask, ...end }),
    'unknown tasks': (agent) => agent.send('SCRIPT_OUTPUT', { ...output, taskId: 'nosuch' }),
    terminals: (agent) => agent.send('TERMINAL_OUTPUT', { sessionId: 's1', data: 'x' }),
    errors: (agent) => agent.send('ERROR', { code: 500, message: 'x'.repeat(100), refId: null }),
    distrust: (agent) => agent.send('ERROR', { code: 403, message: 'signature missing', refId: null }),
  }
  const staysOpen = new Set(['errors', 'distrust'])
  const agents = new Map<string, ScriptedAgent>()
  for (const [at, what] of Object.keys(sorts).entries())
    agents.set(what, await ScriptedAgent.link(server, await server.enroll(`bad${at}`)))
  const before = { lines: lines.length, memory: await memory() }
  for (const [what, send] of Object.entries(sorts)) {
    const agent = agents.get(what)
    if (!agent) throw new Error(what)
    for (let n = 0; n < frames; n++) send(agent)
    if (staysOpen.has(what)) await agent.settled()
    else t.is((await agent.closed).code, 4400, what)
    await other.settled()
    t.is((await server.api('GET', '/api/health')).status, 200, what)
  }
  const written = lines.length - before.lines
  t.true(written < 150, `${written} lines in the log: ${lines.slice(-5).join('\n')}`)
  t.true(lines.every((line) => line.length < 10_000))
  for (const action of ['agent.frame', 'agent.distrust']) {
    const { totalElements } = await server.data('GET', `/api/audit?action=${action}`)
    t.true(totalElements > 0 && totalElements <= 150, `${action}: ${totalElements} entries`)
  }
  const grown = (await memory()) - before.memory
  t.true(grown < 150, `${Math.round(grown)} MB more`)
  t.log(`${written} lines, ${Math.round(grown)} MB`)
  t.is((await server.data('GET', `/api/tasks/${otherTask}`)).results[0].status, 'RUNNING')
})
