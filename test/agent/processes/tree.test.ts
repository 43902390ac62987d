import { once } from 'node:events'
import test from 'ava'
import { listed, remnantText } from '../../../src/agent/processes/containment.ts'
import { startTimeOf } from '../../../src/agent/processes/machine.ts'
import {
  groupsWithin,
  membersOf,
  type Process,
  ProcessTable,
} from '../../../src/agent/processes/processes.ts'
import { endTree, levelOf } from '../../../src/agent/processes/tree.ts'
import { said } from '../../helpers/programs/said.ts'
import { alive, newMark, running, started, treeOf } from '../../helpers/programs/trees.ts'

const isRoot = process.getuid?.() === 0
const asRoot = isRoot ? test : test.skip // Only root may start processes of another user.
const times = { grace: 300, patience: 20_000 }

test('F14 without a cgroup, processes that left the session, ignore TERM or are stopped are also ended', async (t) => {
  const mark = newMark()
  const script = `trap '' TERM
( setsid sh -c 'trap "" TERM; kill -STOP $$; sleep 600' & )
( setsid sh -c 'trap "" TERM; sleep 600; sleep 600' & )
echo up; sleep 600; sleep 600`
  const child = started(t, ['sh', '-c', script], { RSM_EXECUTION: mark })
  await said(child)
  t.deepEqual(await endTree(treeOf(mark, child), new ProcessTable(), times), [])
  t.is(await running(mark), 0)
})

test('F14 without a cgroup, endlessly forking chains of processes in separate sessions are ended', async (t) => {
  const mark = newMark()
  const script = `import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
for chain in range(20):
  if os.fork() == 0:
    end = time.time() + 120
    while time.time() < end:
      if os.fork() != 0: os._exit(0)
      os.setsid()
      time.sleep(0.05)
    os._exit(0)
print("up", flush=True)
time.sleep(120)`
  const child = started(t, ['python3', '-c', script], { RSM_EXECUTION: mark })
  await said(child)
  t.deepEqual(await endTree(treeOf(mark, child), new ProcessTable(), times), [])
  t.is(await running(mark), 0)
})

test('F14 ending a tree does not use up the grace period if all its processes obey TERM', async (t) => {
  const mark = newMark()
  const child = started(t, ['sh', '-c', 'echo up; sleep 600 & sleep 600'], { RSM_EXECUTION: mark })
  await said(child)
  // Longer than a test's timeout.
  const grace = 90_000
  t.deepEqual(await endTree(treeOf(mark, child), new ProcessTable(), { grace, patience: 1 }), [])
})

test('F14 processes started by a script to clean up after TERM may finish', async (t) => {
  const mark = newMark()
  const script = `trap 'sleep 1; echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.1; done`
  const child = started(t, ['sh', '-c', script], { RSM_EXECUTION: mark })
  let heard = ''
  child.stdout?.on('data', (data: Buffer) => (heard += data.toString()))
  await said(child, 'up')
  const closed = once(child, 'close')
  await endTree(treeOf(mark, child), new ProcessTable(), { grace: 60_000, patience: 1 })
  await closed
  t.is(heard, 'up\ncleaned\n')
})

test('F14 a later process with the pid of an ended wrapper is not touched', async (t) => {
  const child = started(t, ['sh', '-c', 'echo up; sleep 600; true'])
  await said(child)
  const tree = treeOf(newMark(), child)
  const earlier = { pid: child.pid ?? 0, startTime: (tree.root?.startTime ?? 0) - 1 }
  t.deepEqual(await endTree({ ...tree, root: earlier }, new ProcessTable(), times), [])
  t.true(alive(child))
})

asRoot("F14 a process of another user is not ended even if it carries the execution's id", async (t) => {
  const mark = newMark()
  const foreign = started(
    t,
    ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'sh', '-c', 'echo up; sleep 600; true'],
    { RSM_EXECUTION: mark },
  )
  await said(foreign)
  t.deepEqual(await endTree(treeOf(mark, null), new ProcessTable(), times), [])
  t.true(alive(foreign))
})

/** A process without an execution's id. */
function process_(pid: number, more: Partial<Process> = {}): Process {
  const plain = { startTime: pid * 10, parent: 1, group: pid, session: pid, command: 'sh' }
  return { pid, ...plain, isUninterruptible: false, isZombie: false, tag: null, uid: null, ...more }
}

const origin = { mark: 'a', root: { pid: 100, startTime: 1000 }, uids: [7] }
const ids = (members: Process[]) => members.map(({ pid }) => pid).sort((a, b) => a - b)

test('a scan does not read the execution’s id of processes older than the wrapper', async (t) => {
  const mark = newMark()
  const child = started(t, ['sh', '-c', 'echo up; sleep 600; true'], { RSM_EXECUTION: mark })
  await said(child)
  const startTime = startTimeOf(child.pid ?? 0) ?? 0
  const table = new ProcessTable()
  const markOf = (all: Process[]) => all.find(({ pid }) => pid === child.pid)?.tag
  t.is(markOf(await table.scan(startTime + 1)), null)
  t.is(markOf(await table.scan(startTime)), mark)
  const [late, early] = await Promise.all([table.scan(startTime + 1), table.scan()])
  t.is(markOf(late), mark)
  t.is(markOf(early), mark)
})

test('members of a tree are its session, its descendants, marked processes, and those of known sessions', (t) => {
  const all = [
    process_(100),
    process_(101, { session: 100, group: 100 }),
    process_(102, { parent: 101 }),
    process_(103, { parent: 102 }),
    process_(104, { tag: 'a', uid: 7 }),
    process_(105, { tag: 'a', uid: 8 }),
    process_(106, { tag: 'b', uid: 7 }),
    process_(107, { session: 90 }),
    process_(108, { parent: 91 }),
    process_(109),
  ]
  t.deepEqual(ids(membersOf(all, origin, [])), [100, 101, 102, 103, 104])
  t.deepEqual(ids(membersOf(all, origin, [{ pid: 90, startTime: 1 }])), [100, 101, 102, 103, 104, 107])
  t.deepEqual(ids(membersOf(all, { ...origin, root: null }, [])), [104])
})

test('a reused pid, and a session of it, is not a member', (t) => {
  const all = [process_(100, { startTime: 5000 }), process_(101, { session: 100, parent: 100 })]
  t.deepEqual(membersOf(all, origin, []), [])
  t.deepEqual(membersOf(all, { ...origin, root: null }, [{ pid: 100, startTime: 1000 }]), [])
})

test('only groups that consist of members are signalled as groups', (t) => {
  const members = [process_(100), process_(101, { group: 50 }), process_(102, { group: 100 })]
  t.deepEqual(groupsWithin([...members, process_(51, { group: 50 })], members), [100])
})

test('a result lists at most 20 survivors and the number of others', (t) => {
  const remnants = Array.from({ length: 23 }, (_, at) => ({
    pid: at + 1,
    command: 'x'.repeat(100),
    isUninterruptible: at === 0,
  }))
  t.is(listed(remnants).length, 20)
  t.is(listed(remnants)[0]?.command.length, 64)
  t.regex(
    remnantText(remnants) ?? '',
    /^could not end: 1 x{64} \(in uninterruptible sleep\), 2 x{64}, .* and 3 more$/,
  )
  t.is(remnantText([]), null)
})

test('the containment level of an execution is its cgroup, its PID namespace, or its process group', (t) => {
  t.is(levelOf({ cgroup: '/sys/fs/cgroup/x', isBoxed: true }), 'cgroup')
  t.is(levelOf({ cgroup: null, isBoxed: true }), 'pid-namespace')
  t.is(levelOf({ cgroup: null, isBoxed: false }), 'process-group')
})
