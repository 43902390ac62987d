import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { findContainment, listed, remnantText } from '../../../src/agent/processes/containment.ts'
import { ProcessTable } from '../../../src/agent/processes/processes.ts'
import { endTree } from '../../../src/agent/processes/tree.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { openProgram } from '../../helpers/programs/open-program.ts'
import { said } from '../../helpers/programs/said.ts'
import { alive, newMark, running, started, treeOf } from '../../helpers/programs/trees.ts'
import { until } from '../../helpers/until.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may start processes of another user.

asRoot('A18 F14 a process that a non-root agent may not end is reported with pid and program', async (t) => {
  const child = started(t, ['sh', '-c', 'echo up; exec sleep 600'])
  await said(child)
  const commandOf = async () =>
    (await new ProcessTable().scan()).find(({ pid }) => pid === child.pid)?.command
  await until('the sleep runs', async () => (await commandOf()) === 'sleep')
  const tree = JSON.stringify({ ...treeOf(newMark(), child), uids: [65534] })
  const rooms = pathToFileURL(join(openProgram(t), 'dist/src/agent/processes/')).href
  const program = `const { endTree } = await import('${rooms}tree.js')
const { ProcessTable } = await import('${rooms}processes.js')
console.log(JSON.stringify(await endTree(${tree}, new ProcessTable(), { grace: 100, patience: 300 })))`
  const ending = spawn(
    'setpriv',
    [
      '--reuid=65534',
      '--regid=65534',
      '--clear-groups',
      process.execPath,
      '--input-type=module',
      '-e',
      program,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' },
  )
  const remnants = JSON.parse(await said(ending))
  t.deepEqual(listed(remnants), [{ pid: child.pid ?? 0, command: 'sleep' }])
  t.is(remnantText(remnants), `could not end: ${child.pid} sleep`)
  t.true(alive(child))
})

/** Creates a cgroup for an execution; null if this machine does not allow it. */
function cgroupFor(t: ExecutionContext, mark: string): string | null {
  const containment = findContainment(mark)
  t.teardown(() => containment.sweep(new Set()))
  return containment.create('task')
}

const inGroups = findContainment(newMark()).level === 'cgroup' ? test : test.skip // Only where cgroups can be made.

inGroups(
  'F14 a process that left its cgroup and its session is found and gets SIGTERM before SIGKILL',
  async (t) => {
    const mark = newMark()
    const cgroup = cgroupFor(t, mark)
    const script = `echo $$ > ${cgroup}/cgroup.procs
setsid sh -c 'echo $$ > ${dirname(String(cgroup))}/cgroup.procs
trap "echo asked; exit 0" TERM; echo out; while :; do sleep 0.1; done' &
setsid sh -c 'echo $$ > ${dirname(String(cgroup))}/cgroup.procs
trap "" TERM; echo out; while :; do sleep 0.1; done' &
sleep 600`
    const child = started(t, ['sh', '-c', script], { RSM_EXECUTION: mark })
    let heard = ''
    child.stdout?.on('data', (data: Buffer) => (heard += data.toString()))
    await said(child, 'out\nout\n')
    const closed = once(child, 'close')
    const tree = { ...treeOf(mark, child), cgroup }
    t.deepEqual(await endTree(tree, new ProcessTable(), { grace: 6_000, patience: 60_000 }), [])
    t.is(await running(mark), 0)
    await closed
    t.is(heard, 'out\nout\nasked\n')
  },
)

inGroups(
  'F14 processes that stay in their cgroup do not keep the others from getting SIGTERM first',
  async (t) => {
    const mark = newMark()
    const cgroup = cgroupFor(t, mark)
    const script = `echo $$ > ${cgroup}/cgroup.procs
setsid sh -c 'echo $$ > ${dirname(String(cgroup))}/cgroup.procs
trap "echo asked; exit 0" TERM; echo out; while :; do sleep 0.1; done' &
trap "" TERM
while :; do sleep 0.1; done`
    const child = started(t, ['sh', '-c', script], { RSM_EXECUTION: mark })
    let heard = ''
    child.stdout?.on('data', (data: Buffer) => (heard += data.toString()))
    await said(child, 'out')
    const closed = once(child, 'close')
    const tree = { ...treeOf(mark, child), cgroup }
    t.deepEqual(await endTree(tree, new ProcessTable(), { grace: 6_000, patience: 60_000 }), [])
    t.is(await running(mark), 0)
    await closed
    t.is(heard, 'out\nasked\n')
  },
)

/** Counts the processes with this text in their arguments. */
function named(needle: string): number {
  let count = 0
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(needle)) count += 1
    } catch {
      // The process has just ended.
    }
  }
  return count
}

/** A tree that ignores TERM and leaves its session: the arguments of each process contain `needle`. */
const stubborn = (needle: string) => `
trap '' TERM
echo up
setsid bash -c 'trap "" TERM; exec -a "${needle}-child" sleep 600' &
( setsid bash -c 'exec -a "${needle}-orphan" sleep 600' & )
wait
sleep 600`

test('a timeout ends the whole tree, even processes that left the session and ignore TERM', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const needle = `rsm-timeout-${process.pid}-${Date.now()}`
  server.execute(agent.agentId, { taskId: 'timeout', script: stubborn(needle), timeout: 1 })
  const complete = await server.completed('timeout')
  t.is(complete.exitCode, -1)
  t.is(complete.status, 'TIMEOUT')
  t.is(named(needle), 0)
  t.is(server.text('timeout'), 'up\n')
  t.true(complete.duration >= 5_900 && complete.duration < 60_000, `${complete.duration} ms`)
  t.deepEqual(complete.survivors, [])
  t.is(complete.containment, server.hellos[0]?.capabilities.containment)
})
