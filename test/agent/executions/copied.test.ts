import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { systemClock } from '../../../src/agent/clock.ts'
import { Journal } from '../../../src/agent/executions/journal.ts'
import { type Machine, thisMachine } from '../../../src/agent/processes/machine.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { request, runnerOn } from '../../helpers/agents/runner.ts'
import { until } from '../../helpers/until.ts'

const rebooted: Machine = { bootId: () => 'another', uptime: () => 5 }

const bash = (script: string) => ({ script, scriptType: 'BASH' as const, timeout: 30 })

/** Agents on one directory and on copies of it. Their scripts append a letter at each start. */
async function place(t: ExecutionContext) {
  const base = await temporaryDirectory(t)
  const starts = () => (existsSync(`${base}/starts`) ? readFileSync(`${base}/starts`, 'utf8') : '')
  const text = (letter: string, rest: string) => `printf ${letter} >> ${base}/starts; ${rest}`
  const waiting = `until [ -e ${base}/go ] || [ ! -d ${base} ]; do sleep 0.02; done`
  const agent = (name: string, machine = thisMachine) => {
    /** Timers of a minute, which the test fires. */
    const minutes: (() => void)[] = []
    const after = (delay: number, run: () => void) => {
      if (delay !== 60_000) return systemClock.after(delay, run)
      minutes.push(run)
      return () => void minutes.splice(minutes.indexOf(run), 1)
    }
    const data = join(base, name)
    mkdirSync(data, { recursive: true })
    const journal = new Journal(join(data, 'journal'), Date.now)
    const world = { clock: { ...systemClock, after }, machine }
    return { ...runnerOn(t, join(data, 'executions'), journal, 1, undefined, world), minutes }
  }
  const copy = (name: string) => cpSync(join(base, 'original'), join(base, name), { recursive: true })
  /** An original that has run a script and its first check, which fails once `go` exists. */
  const verifying = async () => {
    const original = agent('original')
    const verify = { ...bash(text('v', `${waiting}; exit 3`)), retries: 1, intervalSeconds: 0 }
    const rollback = bash(text('r', ''))
    const end = original.ended('gated')
    void original.runner.execute({ ...request('gated', text('s', '')), verify, rollback })
    await until('it is verified', () => starts() === 'sv')
    return { ...original, end }
  }
  return { base, starts, text, waiting, agent, copy, verifying }
}

test('A01 P48 a copy of an agent with a running script neither ends it nor rolls it back, and the original continues', async (t) => {
  const { base, starts, text, waiting, agent, copy } = await place(t)
  const original = agent('original')
  const end = original.ended('gated')
  const verify = { ...bash(text('v', 'exit 3')), retries: 0, intervalSeconds: 0 }
  const order = { ...request('gated', text('s', waiting)), verify, rollback: bash(text('r', '')) }
  void original.runner.execute(order)
  await until('it runs', () => starts() === 's')
  copy('copy')
  const second = agent('copy')
  const told = second.ended('gated')
  await second.runner.recover()
  writeFileSync(`${base}/go`, '')
  t.like(await told, { status: 'LOST' })
  t.regex((await told).error ?? '', /data directory of its agent was copied/)
  t.like(await end, { status: 'FAILED', exitCode: 3, rollback: { status: 'SUCCESS' } })
  t.is(starts(), 'svr')
})

for (const [kind, machine] of [
  ['a copy of a directory', thisMachine],
  ['a clone of a machine', rebooted],
] as const)
  test(`A01 P48 ${kind} starts no phase without the server’s permission, and none after a refusal`, async (t) => {
    const { base, starts, agent, copy, verifying } = await place(t)
    const original = await verifying()
    copy('copy')
    const second = agent('copy', machine)
    await second.runner.recover()
    await until('it waits', () => second.runner.executions.get('gated')?.stopWaiting !== null)
    writeFileSync(`${base}/go`, '')
    t.like(await original.end, { status: 'FAILED', rollback: { status: 'SUCCESS' } })
    t.is(starts(), 'svvr')
    const told = second.ended('gated')
    second.answered('gated', true)
    t.like(await told, { status: 'LOST', exitCode: 255, rollback: undefined })
    t.regex((await told).error ?? '', /^not continued: /)
    t.is(starts(), 'svvr')
  })

test('A01 P48 a restarted host is verified again only once its link has been up for a minute', async (t) => {
  const { base, starts, agent, verifying } = await place(t)
  const first = await verifying()
  await first.runner.stop()
  const { runner, minutes, ended, answered } = agent('original', rebooted)
  await runner.recover()
  answered('gated', false)
  t.is(minutes.length, 1)
  runner.permissions.unlinked()
  t.is(minutes.length, 0)
  answered('gated', false)
  t.is(starts(), 'sv')
  writeFileSync(`${base}/go`, '')
  minutes[0]?.()
  t.like(await ended('gated'), { status: 'FAILED', exitCode: 3, verify: { attempts: 2 } })
  t.is(starts(), 'svvr')
})

test('A01 P48 a queued script starts on a copy only with the server’s permission, and can be cancelled', async (t) => {
  const { base, starts, text, waiting, agent, copy } = await place(t)
  const original = agent('original')
  void original.runner.execute(request('first', text('1', waiting)))
  await until('the first runs', () => starts() === '1')
  for (const taskId of ['a', 'b', 'c']) await original.runner.execute(request(taskId, text(taskId, '')))
  copy('copy')
  const second = agent('copy')
  const ends = ['a', 'b', 'c'].map(second.ended)
  await second.runner.recover()
  t.deepEqual(second.runner.executions.get('first')?.complete?.status, 'LOST')
  second.runner.cancel('a')
  second.answered('b', true)
  second.answered('c', false)
  second.minutes[0]?.()
  const statuses = (await Promise.all(ends)).map(({ status }) => status)
  t.deepEqual(statuses, ['CANCELLED', 'LOST', 'SUCCESS'])
  t.is(starts(), '1c')
  writeFileSync(`${base}/go`, '')
  await until('the original has run the rest', () => starts().length === 5)
})

test('an agent restarted in a moved directory continues at once', async (t) => {
  const { base, starts, agent, verifying } = await place(t)
  const first = await verifying()
  await first.runner.stop()
  renameSync(join(base, 'original'), join(base, 'moved'))
  const { runner, ended } = agent('moved')
  await runner.recover()
  writeFileSync(`${base}/go`, '')
  t.like(await ended('gated'), { status: 'FAILED', exitCode: 3, rollback: { status: 'SUCCESS' } })
  t.is(starts(), 'svvr')
})
