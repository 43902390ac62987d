import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import test, { type ExecutionContext } from 'ava'
import type { FaultPoint } from '../../../src/core/fault-point.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { agentProcess, kill } from '../../helpers/agents/agent-process.ts'
import { crashed, type Fault } from '../../helpers/faults/fault.ts'
import { FakeServer } from '../../helpers/servers/fake-server.ts'
import { turns } from '../../helpers/turns.ts'
import { until } from '../../helpers/until.ts'

const agentId = 'agent-under-test'

async function start(t: ExecutionContext) {
  const dataDir = await temporaryDirectory(t)
  const server = await FakeServer.start()
  t.teardown(() => server.close())
  const agent = (fault?: Fault, options = {}) =>
    agentProcess(t, server, dataDir, { agentId, ...options }, fault)
  /** One letter per start, in order: a script, two attempts that fail, a rollback. */
  const starts = () => (existsSync(`${dataDir}/starts`) ? readFileSync(`${dataDir}/starts`, 'utf8') : '')
  const text = (letter: string, rest: string) =>
    `printf ${letter} >> ${dataDir}/starts; echo ${letter}; ${rest}`
  const bash = (script: string) => ({ script, scriptType: 'BASH' as const, timeout: 60 })
  const execute = (rests: Partial<Record<'script' | 'verify' | 'rollback', string>> = {}, interval = 0) =>
    server.execute(agentId, {
      taskId: 'gated',
      script: text('s', rests.script ?? 'exit 0'),
      verify: { ...bash(text('v', rests.verify ?? 'exit 3')), retries: 1, intervalSeconds: interval },
      rollback: bash(text('r', rests.rollback ?? 'exit 0')),
    })
  return { dataDir, server, agent, starts, execute }
}

const turn = turns(3)
const points: readonly FaultPoint[] = [
  'agent.started.after',
  'agent.spawned.before',
  'agent.spawned.after',
  'agent.passed.before',
  'agent.passed.after',
]
const faults = [
  ...points.flatMap((point) => [1, 2, 3, 4].map((nth): Fault => `${point}@${nth}`)),
  'agent.gated.after',
  'agent.ended.before',
  'agent.ended.after',
] as const

for (const fault of faults)
  test(`F08 an agent that is killed at ${fault} starts no phase twice and skips none`, (t) =>
    turn(async () => {
      const { server, agent, starts, execute } = await start(t)
      const first = await agent(fault)
      await server.linked()
      execute()
      await crashed(first)
      await agent()
      const complete = await server.completed('gated')
      t.is(starts(), 'svvr')
      t.is(server.text('gated'), 's\nv\nv\nr\n')
      t.like(complete, { status: 'FAILED', exitCode: 3 })
      t.deepEqual(complete.verify, { status: 'FAILED', exitCode: 3, attempts: 2 })
      t.deepEqual(complete.rollback, { status: 'SUCCESS', exitCode: 0 })
      const all = [...server.of('gated').chunks.values()].sort((a, b) => a.sequence - b.sequence)
      t.deepEqual(
        all.map(({ phase = 'SCRIPT' }) => phase),
        ['SCRIPT', 'VERIFY', 'VERIFY', 'ROLLBACK'],
      )
    }))

for (const [phase, expected] of [
  ['script', { status: 'SUCCESS', exitCode: 0 }],
  ['verify', { status: 'SUCCESS', exitCode: 0 }],
  ['rollback', { status: 'FAILED', exitCode: 3 }],
] as const)
  test(`F08 an agent that is killed while ${phase} runs finds its real result`, (t) =>
    turn(async () => {
      const { dataDir, server, agent, starts, execute } = await start(t)
      const first = await agent()
      await server.linked()
      const wait = `touch ${dataDir}/there; until [ -e ${dataDir}/go ] || [ ! -d ${dataDir} ]; do sleep 0.05; done`
      const ends = phase === 'rollback' ? {} : { verify: 'exit 0' }
      execute({ ...ends, [phase]: `${wait}; exit 0` })
      await until(`${phase} runs`, () => existsSync(`${dataDir}/there`))
      await kill(first, 'SIGKILL')
      await agent()
      await server.linked(2)
      t.is(server.hellos[1]?.tasks[0]?.phase, phase.toUpperCase())
      t.is(server.of('gated').completes.length, 0)
      writeFileSync(`${dataDir}/go`, '')
      t.like(await server.completed('gated'), expected)
      t.is(starts(), phase === 'rollback' ? 'svvr' : 'sv')
    }))

test('F08 a verification attempt whose result is unknown counts as failed, and the next one starts', (t) =>
  turn(async () => {
    const { dataDir, server, agent, starts, execute } = await start(t)
    const first = await agent()
    await server.linked()
    execute({ verify: `echo $PPID > ${dataDir}/wrapper; [ "$(cat ${dataDir}/starts)" = svv ] || sleep 600` })
    await until('the first attempt runs', () => existsSync(`${dataDir}/wrapper`))
    await kill(first, 'SIGKILL')
    // The wrapper and its subshell, which would write the result.
    const parent = Number(readFileSync(`${dataDir}/wrapper`, 'utf8'))
    process.kill(
      -Number(/\) \w \d+ (\d+)/.exec(readFileSync(`/proc/${parent}/stat`, 'utf8'))?.[1]),
      'SIGKILL',
    )
    await agent()
    const complete = await server.completed('gated')
    t.is(complete.status, 'SUCCESS')
    t.deepEqual(complete.verify, { status: 'SUCCESS', exitCode: 0, attempts: 2 })
    t.is(starts(), 'svv')
  }))

test('a host restarted during verification continues, and does not repeat that attempt', (t) =>
  turn(async () => {
    const { dataDir, server, agent, starts, execute } = await start(t)
    const first = await agent(undefined, { bootId: 'before' })
    await server.linked()
    execute({ verify: `touch ${dataDir}/there; sleep 600` })
    await until('the verification runs', () => existsSync(`${dataDir}/there`))
    await kill(first, 'SIGKILL')
    const second = await agent(undefined, { bootId: 'after', haste: 100 })
    await until('the second attempt', () => starts() === 'svv')
    await kill(second, 'SIGKILL')
    await agent(undefined, { bootId: 'later', haste: 100 })
    const complete = await server.completed('gated')
    t.is(starts(), 'svvr')
    t.like(complete, { status: 'FAILED', exitCode: 255 })
    t.regex(complete.error ?? '', /^verification failed: the host was restarted while it ran/)
    t.deepEqual(complete.verify, { status: 'FAILED', exitCode: null, attempts: 2 })
    t.deepEqual(complete.rollback, { status: 'SUCCESS', exitCode: 0 })
  }))

test('P55 phases run without a link, and their results are reported over the next one', (t) =>
  turn(async () => {
    const { server, agent, starts, execute } = await start(t)
    await agent()
    await server.linked()
    execute({}, 0.3)
    await until('the script has begun', () => starts() !== '')
    server.refusesLinks = 503
    server.socket?.terminate()
    await until('all phases have run', () => starts() === 'svvr')
    server.refusesLinks = null
    const complete = await server.completed('gated')
    t.like(complete, { status: 'FAILED', exitCode: 3 })
    t.is(server.text('gated'), 's\nv\nv\nr\n')
  }))
