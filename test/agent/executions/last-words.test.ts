import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { anotherUser, asRoot, modes } from '../../helpers/agents/modes.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { until } from '../../helpers/until.ts'

for (const [mode, options, on] of modes)
  on(`output through a process substitution is complete: sandbox ${mode}`, async (t) => {
    const { server, agent } = await linkedAgent(t, options)
    const script = "exec > >(sed 's/^/> /') 2>&1; seq 1 20000; echo failed >&2; exit 3"
    server.execute(agent.agentId, { taskId: 'filtered', script })
    t.like(await server.completed('filtered'), { exitCode: 3, survivors: [], error: null })
    const lines = [...Array.from({ length: 20_000 }, (_, at) => `> ${at + 1}`), '> failed', '']
    t.is(server.text('filtered'), lines.join('\n'))
  })

test('output written while the agent is down is kept, and processes still writing it are reported as survivors', async (t) => {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const options = { agentId: 'comes-back' }
  const first = await agentProcess(t, server, dataDir, options)
  await server.linked()
  const script = `echo up; until [ -e ${dataDir}/go ]; do sleep 0.01; done
(until [ -e ${dataDir}/on ]; do sleep 0.01; done; echo last; while [ -e ${dataDir}/journal ]; do sleep 0.1; done) &`
  server.execute(options.agentId, { taskId: 'words', script })
  await server.until(() => server.text('words') === 'up\n', 'it runs')
  await kill(first, 'SIGKILL')
  writeFileSync(join(dataDir, 'go'), '')
  const exit = () => readFileSync(join(dataDir, 'executions/words/exit'), 'latin1')
  await until('its end is written', () => exit().startsWith('0 '))
  writeFileSync(join(dataDir, 'on'), '')
  await until('the last words are written', () =>
    readFileSync(join(dataDir, 'executions/words/stdout'), 'utf8').endsWith('last\n'),
  )
  await agentProcess(t, server, dataDir, options)
  const { status, error, survivors = [] } = await server.completed('words')
  t.is(status, 'SUCCESS')
  t.true(survivors.length > 0)
  t.regex(error ?? '', /the script's output open: later output is dropped/)
  t.is(server.text('words'), 'up\nlast\n')
})

function killed([left]: readonly { pid: number }[]): void {
  if (left === undefined) throw new Error('the result lists no survivors')
  process.kill(left.pid, 'SIGKILL')
}

/** Writes 64 KiB every 5 ms in a single process until the test's directory is removed. */
const flood = 'exec 7<> <(:); while [ -e "$STOP" ]; do printf "%65536s" x; read -t 0.005 -u 7; done'

for (const [how, start] of [
  ['a background process', `${flood} &`],
  ['a daemon', `setsid bash -c '${flood}' & disown`],
] as const)
  test(`${how} that keeps writing is reported as a survivor and cannot fill the disk`, async (t) => {
    const { server, agent, dataDir } = await linkedAgent(t)
    const params = { STOP: join(dataDir, 'journal') }
    server.execute(agent.agentId, { taskId: 'left', script: `echo up\n${start}\necho over`, params })
    const {
      status,
      exitCode,
      error,
      survivors = [],
      lastSequence,
      stdoutBytes,
    } = await server.completed('left')
    t.like(
      { status, exitCode, survivors: survivors.length },
      { status: 'SUCCESS', exitCode: 0, survivors: 1 },
    )
    t.is(error, `${survivors[0]?.pid} bash still holds the script's output open: later output is dropped`)
    t.is(server.stored('left'), lastSequence ?? -1)
    t.is(server.text('left').length, stdoutBytes ?? -1)
    const spool = join(dataDir, 'executions/left/stdout')
    let last = 0
    await until('output after the end is cut', () => {
      const before = last
      last = statSync(spool).size
      return last < before
    })
    killed(survivors)
  })

test('unacknowledged output is sent although a leftover process keeps writing', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t)
  const params = { STOP: join(dataDir, 'journal') }
  server.acksOutput = false
  const script = `seq 1 1000000\n${flood} &`
  server.execute(agent.agentId, { taskId: 'kept', script, params })
  const spool = join(dataDir, 'executions/kept/stdout')
  let last = 0
  await until('output after the end is cut', () => {
    const before = last
    last = statSync(spool, { throwIfNoEntry: false })?.size ?? 0
    return last < before
  })
  server.acksOutput = true
  server.socket?.terminate()
  const { survivors = [], stdoutBytes } = await server.completed('kept')
  killed(survivors)
  const numbers = Array.from({ length: 1_000_000 }, (_, at) => `${at + 1}\n`).join('')
  t.true(server.text('kept').startsWith(numbers))
  t.is(server.text('kept').length, stdoutBytes ?? -1)
})

asRoot(
  'output through a process substitution is complete where the agent may not inspect other users’ processes',
  async (t) => {
    const server = await FakeServer.start()
    t.teardown(() => server.close())
    const under = ['setpriv', '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace']
    const options = { ...anotherUser, agentId: 'blind', under }
    await agentProcess(t, server, await temporaryDirectory(t), options)
    await server.linked()
    server.execute('blind', { taskId: 'filtered', script: "exec > >(sleep 0.2; sed 's/^/> /'); echo line" })
    t.like(await server.completed('filtered'), { exitCode: 0, survivors: [], error: null })
    t.is(server.text('filtered'), '> line\n')
    server.execute('blind', { taskId: 'left', script: 'sleep 600 &' })
    const { survivors = [], error } = await server.completed('left')
    killed(survivors)
    t.is(error, `${survivors[0]?.pid} sleep may still hold the script's output open: later output is dropped`)
  },
)

test('a process that holds only stderr and many other descriptors is a survivor', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const script = 'for fd in {10..19} {100..199}; do eval "exec $fd</dev/null"; done; sleep 600 >/dev/null &'
  server.execute(agent.agentId, { taskId: 'left', script })
  const { survivors = [] } = await server.completed('left')
  killed(survivors)
  t.deepEqual(
    survivors.map(({ command }) => command),
    ['sleep'],
  )
})

asRoot('a survivor with a lease on its script’s output cannot stop the agent from cutting it', async (t) => {
  const { server, agent, dataDir } = await linkedAgent(t, anotherUser)
  const script = `exec 2>/dev/null; python3 -c '
import fcntl, os, time
os.write(1, b"up\\n")
while os.getppid():
    try: fcntl.fcntl(1, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError: pass
    os.write(1, b"x" * 65536)
    time.sleep(0.005)
' &`
  server.execute(agent.agentId, { taskId: 'leased', script })
  const { survivors = [] } = await server.completed('leased')
  const spool = join(dataDir, 'executions/leased/stdout')
  let last = 0
  await until('output after the end is cut', () => {
    const before = last
    last = statSync(spool, { throwIfNoEntry: false })?.size ?? 0
    return last < before
  })
  killed(survivors)
  server.execute(agent.agentId, { taskId: 'next', script: 'echo ran' })
  t.is((await server.completed('next')).exitCode, 0)
})
