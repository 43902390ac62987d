import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecuteScript } from '../../../src/core/protocol/messages.ts'
import { linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { anotherUser, boxed, modes } from '../../helpers/agents/modes.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'

/** Descriptors of any child: streams, one for the directory itself, and those this process was started with. */
const descriptors = spawnSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }).stdout

interface Case {
  name: string
  request: Partial<ExecuteScript>
  exitCode: number
  signal?: string
  out?: string
}

const cases: Case[] = [
  {
    name: 'success',
    request: { script: 'echo hello; echo again >> /dev/stdout' },
    exitCode: 0,
    out: 'hello\nagain\n',
  },
  { name: 'exit', request: { script: 'exit 7' }, exitCode: 7 },
  { name: 'unknown command', request: { script: 'no-such-command' }, exitCode: 127 },
  { name: 'killed', request: { script: 'kill -9 $$' }, exitCode: 137, signal: 'SIGKILL', out: '' },
  { name: 'segv', request: { script: 'kill -SEGV $$' }, exitCode: 139, signal: 'SIGSEGV', out: '' },
  {
    name: 'python',
    request: { scriptType: 'PYTHON', script: 'import sys; print(6*7); sys.exit(3)' },
    exitCode: 3,
    out: '42\n',
  },
  { name: 'workDir', request: { script: 'pwd', workDir: '/usr' }, exitCode: 0, out: '/usr\n' },
  { name: 'no workDir', request: { script: 'pwd', workDir: '/no/such/place' }, exitCode: 126 },
  {
    name: 'params',
    request: { script: 'printf %s "$P$c$1"', params: { P: 'a b\n', c: 'x' } },
    exitCode: 0,
    out: 'a b\nx',
  },
  { name: 'stdin', request: { script: 'cat; umask' }, exitCode: 0, out: '0022\n' },
  { name: 'descriptors', request: { script: 'ls /proc/self/fd' }, exitCode: 0, out: descriptors },
  {
    name: 'timeout',
    request: { script: 'trap "echo ended; exit 9" TERM; echo up; while :; do sleep 0.1; done', timeout: 1 },
    exitCode: -1,
    out: 'up\nended\n',
  },
  { name: 'background', request: { script: 'sleep 3 & exit 4' }, exitCode: 4 },
]

for (const [mode, options, on] of modes) {
  on(
    `sandbox ${mode}: exit codes, signals, output, params, descriptors and timeouts are reported correctly`,
    async (t) => {
      const { server, agent } = await linkedAgent(t, options)
      for (const { name, request } of cases)
        server.execute(agent.agentId, { taskId: name.replaceAll(' ', '-'), ...request })
      for (const { name, exitCode, signal, out } of cases) {
        const taskId = name.replaceAll(' ', '-')
        const complete = await server.completed(taskId)
        t.is(complete.exitCode, exitCode, `${name}: ${complete.error} ${server.text(taskId, 'stderr')}`)
        // bubblewrap passes on only an exit code, no signal.
        t.is(complete.signal, mode.startsWith('strict') ? null : (signal ?? null), name)
        if (out !== undefined) t.is(server.text(taskId), out, name)
        // A message of the wrapper shell about the script's death is not output of the script.
        if (signal) t.is(server.text(taskId, 'stderr'), '', name)
      }
    },
  )
}

boxed(
  'strict: the system is read-only, /tmp and home are private and empty, the data directory is hidden',
  async (t) => {
    const { server, agent, dataDir } = await linkedAgent(t, { ...anotherUser, sandbox: 'strict' })
    const outside = join(tmpdir(), `rsm-outside-${process.pid}`)
    writeFileSync(outside, 'seen')
    t.teardown(() => rmSync(outside))
    const script = `
for path in / /usr /etc /var /run /sys /proc/sys/kernel/core_pattern; do [ -w $path ] && echo writes $path; done
for path in ${dataDir} ${outside} /root/.profile /run/systemd /dev/mem /dev/sda; do [ -e $path ] && echo sees $path; done
ls -A /tmp /home /root; echo mine > /tmp/mine && cat /tmp/mine; echo shared > /dev/shm/x && cat /dev/shm/x
chmod u+w /run/rsm/script 2>/dev/null && echo changed; grep -E 'CapEff|CapBnd|CapAmb|CapInh' /proc/self/status | cut -f2 | sort -u`
    server.execute(agent.agentId, { taskId: 'files', script })
    const complete = await server.completed('files')
    t.is(complete.error, null)
    t.is(server.text('files'), '/home:\n\n/root:\n\n/tmp:\nmine\nshared\n0000000000000000\n')
  },
)

boxed(
  'strict: a script sees only its own processes, and cannot signal the agent or another task',
  async (t) => {
    const { server, agent } = await linkedAgent(t, { ...anotherUser, sandbox: 'strict' })
    server.execute(agent.agentId, {
      taskId: 'other',
      script: 'echo up; sleep 600',
      params: { SECRET: 'of-another-task' },
    })
    await server.until(() => server.text('other') === 'up\n', 'another task runs')
    const script = `kill -0 ${process.pid} && echo signalled
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c of-anothe[r]
cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 60[0]'
ls /proc | grep -c '^[0-9]'; ipcs -a >/dev/null; echo $$`
    server.execute(agent.agentId, { taskId: 'processes', script })
    await server.completed('processes')
    const [environments, commands, processes, own] = server.text('processes').split('\n').map(Number)
    t.is(environments, 0)
    t.is(commands, 0)
    t.true((processes ?? 0) < 10 && (own ?? 0) < 100, server.text('processes'))
    t.regex(server.text('processes', 'stderr'), /No such process/)
    server.send('CANCEL_SCRIPT', { taskId: 'other' })
    t.is((await server.completed('other')).exitCode, 143)
  },
)

boxed(
  'strict: scripts that run as root have no capabilities, and cannot change the system or read data',
  async (t) => {
    const { server, agent, dataDir } = await linkedAgent(t, { sandbox: 'strict' })
    const script = `id -u; grep -E 'CapEff|CapPrm|NoNew' /proc/self/status | cut -f2
for path in / /usr /sys/kernel /etc/passwd $(find /proc/[a-z]* -type f -perm /222 2>/dev/null | grep -v self); do [ -w $path ] && echo writes $path; done
mount -o remount,rw / 2>/dev/null && echo remounted; ls ${dataDir} 2>/dev/null; cat /etc/shadow > /tmp/s; true`
    server.execute(agent.agentId, { taskId: 'root', script })
    await server.completed('root')
    t.is(server.text('root'), '0\n0000000000000000\n0000000000000000\n1\n')
  },
)

for (const [sandboxNetwork, expected] of [
  [false, 'closed\n1\n'],
  [true, 'open\n'],
] as const)
  boxed(
    `strict: the network is ${sandboxNetwork ? 'available when allowed' : 'unavailable, even loopback of the host'}`,
    async (t) => {
      const listener = createServer((socket) => socket.end())
      listener.listen(0, '127.0.0.1')
      await once(listener, 'listening')
      t.teardown(() => listener.close())
      const { port } = listener.address() as AddressInfo
      const { server, agent } = await linkedAgent(t, { ...anotherUser, sandbox: 'strict', sandboxNetwork })
      const script = `(: </dev/tcp/127.0.0.1/${port}) 2>/dev/null && echo open || { echo closed; grep -c : /proc/net/dev; }`
      server.execute(agent.agentId, { taskId: 'net', script })
      await server.completed('net')
      t.is(server.text('net'), expected)
    },
  )

boxed('strict: background processes of a script stay alive', async (t) => {
  const { server, agent } = await linkedAgent(t, { ...anotherUser, sandbox: 'strict' })
  const needle = `rsm-left-${process.pid}-${Date.now()}`
  server.execute(agent.agentId, {
    taskId: 'left',
    script: `bash -c 'exec -a ${needle} sleep 600' & echo left`,
  })
  t.is((await server.completed('left')).status, 'SUCCESS')
  const { stdout } = spawnSync('pgrep', ['-f', needle], { encoding: 'utf8' })
  t.not(stdout, '')
  for (const pid of stdout.trim().split('\n')) process.kill(Number(pid), 'SIGKILL')
})

boxed('strict: a working directory hidden by the sandbox is 126, and the error says so', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t, { ...anotherUser, sandbox: 'strict' })
  server.execute(agent.agentId, { taskId: 'hidden', script: 'true', workDir: dataDir })
  const complete = await server.completed('hidden')
  t.is(complete.exitCode, 126)
  t.regex(complete.error ?? '', /is not in this agent's sandbox/)
})

boxed('strict: a script outlives its agent, and the next agent reports its end', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const options = { agentId: 'boxed-agent', ...anotherUser, sandbox: 'strict' } as const
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  const script = 'trap "echo asked; exit 5" TERM; echo up; while :; do sleep 0.05; done'
  server.execute(options.agentId, { taskId: 'orphan', script })
  await server.until(() => server.text('orphan') === 'up\n', 'it runs')
  await kill(first, 'SIGKILL')
  await agentProcess(t, server, dataDir, options)
  await server.linked(2)
  t.deepEqual(server.hellos[1]?.tasks, [{ taskId: 'orphan', state: 'RUNNING', lastSequence: 0 }])
  server.send('CANCEL_SCRIPT', { taskId: 'orphan' })
  const complete = await server.completed('orphan')
  t.is(complete.status, 'CANCELLED')
  t.is(complete.exitCode, 5)
  t.is(server.text('orphan'), 'up\nasked\n')
})
