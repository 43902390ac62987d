import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { ownAccount } from '../../../src/agent/processes/account.ts'
import { cgroupHome } from '../../../src/agent/processes/cgroups.ts'
import { readExit } from '../../../src/agent/processes/exit-file.ts'
import { launch, prepare } from '../../../src/agent/processes/launch.ts'
import { findLimiter, limiterOf, limitReached, type Place } from '../../../src/agent/processes/limits.ts'
import { openSandbox } from '../../../src/agent/processes/sandbox.ts'
import { checkCeiling } from '../../../src/agent/processes/script-setting.ts'
import type { LimitName } from '../../../src/core/tasks/limits.ts'
import { linkedAgent, temporaryDirectory } from '../../helpers/agents/agent.ts'
import { until } from '../../helpers/until.ts'

const { enforced } = findLimiter('test', true)
/** A test that is skipped unless the agent may create cgroups for these limits. */
const when = (...names: LimitName[]) => (names.every((name) => enforced.includes(name)) ? test : test.skip)

/** Cgroups (v1) that agents of this process created for a task. */
function groupsOf(taskId: string): string[] {
  return ['memory', 'pids', 'cpu', null].flatMap((controller) => {
    const home = cgroupHome(controller)
    return home === null ? [] : readdirSync(home).filter((name) => name.endsWith(`-${taskId}`))
  })
}

when('memoryMB')(
  'a script over its memory limit is killed with an error that says why, and no cgroup stays',
  async (t) => {
    const { server, agent } = await linkedAgent(t)
    const taskId = `memory-${process.pid}-${Date.now()}`
    server.execute(agent.agentId, {
      taskId,
      scriptType: 'PYTHON',
      script: 'print("up", flush=True); b = bytearray(200 * 1024 * 1024); print("never")',
      limits: { memoryMB: 64 },
    })
    const complete = await server.completed(taskId)
    t.is(complete.exitCode, 137)
    t.is(complete.status, 'FAILED')
    t.is(complete.error, 'killed: over its memory limit of 64 MB')
    t.is(server.text(taskId), 'up\n')
    t.deepEqual(groupsOf(taskId), [])
    server.execute(agent.agentId, { taskId: 'small', script: 'echo fits', limits: { memoryMB: 64 } })
    t.is((await server.completed('small')).error, null)
  },
)

when('processes')('a fork bomb stops at its process limit', async (t) => {
  const { server, agent } = await linkedAgent(t)
  const script = `import os, time
for n in range(60):
    try: child = os.fork()
    except BlockingIOError: print(n, flush=True); raise
    if child == 0: time.sleep(2); os._exit(0)`
  server.execute(agent.agentId, { taskId: 'forks', scriptType: 'PYTHON', script, limits: { processes: 20 } })
  const complete = await server.completed('forks')
  t.is(complete.error, 'it reached its limit of 20 processes')
  t.is(complete.exitCode, 1)
  t.is(server.text('forks'), '19\n')
  const few = 'sleep 0.1 & sleep 0.1 & wait; echo all'
  server.execute(agent.agentId, { taskId: 'few', script: few, limits: { processes: 3 } })
  await server.completed('few')
  t.is(server.text('few'), 'all\n')
})

when('memoryMB', 'processes')('the lower limit of agent and task applies', async (t) => {
  const { server, agent } = await linkedAgent(t, { limits: { memoryMB: 64, processes: 500 } })
  const script = 'b = bytearray(200 * 1024 * 1024)'
  const asked = { more: { memoryMB: 1024 }, less: { memoryMB: 32 }, none: undefined }
  for (const [taskId, limits] of Object.entries(asked))
    server.execute(agent.agentId, { taskId, scriptType: 'PYTHON', script, ...(limits ? { limits } : {}) })
  t.regex((await server.completed('more')).error ?? '', /limit of 64 MB/)
  t.regex((await server.completed('less')).error ?? '', /limit of 32 MB/)
  t.regex((await server.completed('none')).error ?? '', /limit of 64 MB/)
})

test('P09 HELLO names the limits that can be enforced', async (t) => {
  const { server } = await linkedAgent(t)
  t.deepEqual(server.hellos[0]?.capabilities.limits, [...enforced])
})

test('v2 limits apply to the tree’s cgroup, v1 limits to a separate one, and a limit is never dropped', (t) => {
  const parent = mkdtempSync(join(tmpdir(), 'rsm-limits-'))
  t.teardown(() => rmSync(parent, { recursive: true }))
  const tree = join(parent, 'tree')
  mkdirSync(tree)
  for (const name of ['memory.swap.max', 'memory.oom.group']) writeFileSync(join(tree, name), '')
  const places = new Map<LimitName, Place>([
    ['memoryMB', { version: 2 }],
    ['processes', { version: 1, parent }],
  ])
  const limiter = limiterOf(places, 'rsm-store-')
  t.deepEqual(limiter.enforced, ['memoryMB', 'processes'])
  const { groups } = limiter.create('task', { memoryMB: 64, processes: 10 }, tree, 2)
  t.deepEqual(groups, [tree, join(parent, 'rsm-store-task')])
  const written = (path: string) => readFileSync(join(parent, path), 'utf8')
  t.is(written('tree/memory.max'), String(64 * 1024 ** 2))
  t.is(written('tree/memory.swap.max'), '0')
  t.is(written('tree/memory.oom.group'), '1')
  t.is(written('rsm-store-task/pids.max'), '12')
  t.throws(() => limiter.create('task', { cpuPercent: 50 }, tree, 1), { message: /cannot limit cpu: / })
  t.throws(() => limiter.create('task', { memoryMB: 64 }, null, 1), {
    message: /memory was refused: it has no cgroup/,
  })
  t.deepEqual(limiter.create('task', {}, tree, 1).groups, [])
})

test('an agent does not start with a limit that its host cannot enforce', (t) => {
  const able = limiterOf(new Map<LimitName, Place>([['memoryMB', { version: 2 }]]), 'rsm-')
  t.notThrows(() => checkCeiling({ memoryMB: 64 }, able))
  t.throws(() => checkCeiling({ memoryMB: 64, processes: 9 }, able), {
    message: /^--limit processes: this host cannot limit processes: /,
  })
})

test('a script whose cgroup vanished before it could enter does not run', async (t) => {
  const directory = await temporaryDirectory(t)
  symlinkSync('/dev/full', join(directory, 'cgroup.procs'))
  const account = ownAccount()
  const script = { script: 'echo ran', scriptType: 'BASH', params: {} } as const
  const sandbox = await openSandbox(
    { mode: 'none', network: false, dataDir: directory, own: account },
    account,
  )
  const place = { tag: 'test/gone', sandbox, cgroup: null, limitGroups: [directory] }
  const start = { taskId: 'gone', program: { script }, directory, account, ...place }
  prepare(start)
  const { begin } = await launch(start, directory)
  begin()
  // Keeps the test alive: the child process alone does not.
  await until('it has ended', () => readExit(directory) !== null)
  t.is(readExit(directory)?.code, 126)
  t.is(readFileSync(join(directory, 'stdout'), 'utf8'), '')
  t.regex(readFileSync(join(directory, 'stderr'), 'utf8'), /cgroup of its limits is gone/)
})

test('the error names the limit that ended a script, from cgroups v1 and v2', (t) => {
  const group = mkdtempSync(join(tmpdir(), 'rsm-limits-'))
  t.teardown(() => rmSync(group, { recursive: true }))
  const limited = { limits: { memoryMB: 64, processes: 9 }, groups: [group] }
  const failed = { status: 'FAILED', exitCode: 137 } as const
  t.is(limitReached(limited, failed), null)
  writeFileSync(join(group, 'pids.events'), 'max 3\n')
  t.is(limitReached(limited, failed), 'it reached its limit of 9 processes')
  writeFileSync(join(group, 'memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n')
  t.regex(limitReached(limited, failed) ?? '', /^killed: over its memory limit of 64 MB$/)
  rmSync(join(group, 'memory.oom_control'))
  writeFileSync(join(group, 'memory.events'), 'low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n')
  t.regex(limitReached(limited, { ...failed, exitCode: 3 }) ?? '', /^one of its processes was killed: over/)
  t.is(limitReached(limited, { status: 'SUCCESS', exitCode: 0 }), null)
  t.is(limitReached(limited, { status: 'CANCELLED', exitCode: 137 }), null)
  t.is(limitReached(undefined, failed), null)
})
