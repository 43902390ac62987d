import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { Journal } from '../../../src/agent/executions/journal.ts'
import type { ExecuteScript } from '../../../src/core/protocol/messages.ts'
import { outputBound } from '../../../src/core/tasks/gates.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { request, runnerOn } from '../../helpers/agents/runner.ts'
import { until } from '../../helpers/until.ts'

const bash = (script: string) => ({ script, scriptType: 'BASH' as const, timeout: 30 })
const checking = (script: string, retries = 0, intervalSeconds = 0) => ({
  verify: { ...bash(script), retries, intervalSeconds },
})
const undoing = (script: string) => ({ rollback: bash(script) })

async function place(t: ExecutionContext) {
  const base = await temporaryDirectory(t)
  const directory = join(base, 'executions')
  const journal = new Journal(join(base, 'journal'), Date.now)
  const { runner, ended } = runnerOn(t, directory, journal)
  const run = (script: string, gates: Partial<ExecuteScript>) => {
    const end = ended('gated')
    void runner.execute({ ...request('gated', script), ...gates })
    return end
  }
  /** Output of all phases, each piece with its phase. */
  const written = () => {
    const output = runner.executions.get('gated')?.output()
    return Array.from({ length: output?.count ?? 0 }, (_, sequence) => {
      const { phase, stream, content } = output?.read(sequence) ?? {}
      return `${phase} ${stream} ${content?.toString()}`
    })
  }
  return { base, directory, journal, runner, run, written }
}

test('a verification runs after its script succeeds, with its params, and decides the status of the host', async (t) => {
  const { run, written } = await place(t)
  const complete = await run('echo "$RSM_PHASE $A"', {
    params: { A: 'a' },
    ...checking('echo "$RSM_PHASE $A $RSM_EXIT_CODE"; echo hm >&2; exit 7'),
    ...undoing('echo "$RSM_PHASE $A $RSM_EXIT_CODE"'),
  })
  t.like(complete, { status: 'FAILED', exitCode: 7, error: 'verification failed: exit code 7' })
  t.deepEqual(complete.verify, { status: 'FAILED', exitCode: 7, attempts: 1 })
  t.deepEqual(complete.rollback, { status: 'SUCCESS', exitCode: 0 })
  t.is(complete.lastSequence, 3)
  t.is(complete.stderrBytes, 3)
  t.deepEqual(written(), [
    'SCRIPT stdout SCRIPT a\n',
    'VERIFY stdout VERIFY a 0\n',
    'VERIFY stderr hm\n',
    'ROLLBACK stdout ROLLBACK a 7\n',
  ])
})

test('a verification is retried as often as requested until one attempt succeeds', async (t) => {
  const { base, run } = await place(t)
  const complete = await run('true', {
    ...checking(`echo x >> ${base}/tries; [ "$(wc -l < ${base}/tries)" -ge 3 ]`, 5, 0.05),
    ...undoing(`touch ${base}/undone`),
  })
  t.like(complete, { status: 'SUCCESS', exitCode: 0, error: null })
  t.deepEqual(complete.verify, { status: 'SUCCESS', exitCode: 0, attempts: 3 })
  t.is(complete.rollback, undefined)
  t.false(existsSync(`${base}/undone`))
})

test('a script that fails or times out is rolled back without a verification', async (t) => {
  for (const [script, timeout, expected] of [
    ['exit 5', 30, { status: 'FAILED', exitCode: 5 }],
    ['sleep 60', 0.2, { status: 'TIMEOUT', exitCode: -1 }],
  ] as const) {
    const { base, run } = await place(t)
    const gates = {
      ...checking(`touch ${base}/verified`),
      ...undoing(`echo $RSM_EXIT_CODE > ${base}/undone`),
    }
    const complete = await run(script, { timeout, ...gates })
    t.like(complete, expected)
    t.is(complete.verify, undefined)
    t.deepEqual(complete.rollback, { status: 'SUCCESS', exitCode: 0 })
    t.is(readFileSync(`${base}/undone`, 'utf8'), `${expected.exitCode}\n`)
    t.false(existsSync(`${base}/verified`))
  }
})

test('an attempt that times out is ended, and background processes of the script stay alive', async (t) => {
  const { base, run } = await place(t)
  const service = `(echo $BASHPID > ${base}/pid; exec sleep 600) & until [ -s ${base}/pid ]; do sleep 0.02; done`
  const gates = { verify: { ...checking('sleep 600').verify, timeout: 0.2 } }
  const complete = await run(service, gates)
  t.deepEqual(complete.verify, { status: 'TIMEOUT', exitCode: -1, attempts: 1 })
  t.like(complete, { status: 'FAILED', exitCode: -1, error: 'verification failed: timed out' })
  const pid = Number(readFileSync(`${base}/pid`, 'utf8'))
  t.notThrows(() => process.kill(pid, 0))
  process.kill(pid, 'SIGKILL')
})

test('a failed rollback changes only the error message', async (t) => {
  const { run } = await place(t)
  const complete = await run('exit 4', undoing('exit 9'))
  t.like(complete, { status: 'FAILED', exitCode: 4, error: 'rollback failed: exit code 9' })
  t.deepEqual(complete.rollback, { status: 'FAILED', exitCode: 9 })
})

test('a gate that cannot run is refused before anything starts', async (t) => {
  const { base, run } = await place(t)
  const complete = await run(`touch ${base}/began`, {
    rollback: { script: 'exit', scriptType: 'POWERSHELL', timeout: 5 },
  })
  t.like(complete, { status: 'FAILED', exitCode: 127 })
  t.false(existsSync(`${base}/began`))
  t.is(complete.rollback, undefined)
})

test('a script with much output leaves room for the gates’ output, and the request is removed at the end', async (t) => {
  const { directory, run, written } = await place(t)
  const complete = await run('head -c 100000 /dev/zero | tr "\\0" a', {
    maxOutputBytes: 10_000,
    ...checking('head -c 20000 /dev/zero | tr "\\0" b; echo last; exit 1', 1),
  })
  t.true(complete.truncated)
  t.is(complete.stdoutBytes, 140_010)
  const ofVerify = written().filter((text) => text.startsWith('VERIFY'))
  t.is(ofVerify.filter((text) => text.endsWith('last\n')).length, 2)
  t.true(written().join('').length < outputBound(10_000, checking('', 1)) + 1000)
  t.false(existsSync(join(directory, 'gated', 'request.json')))
})

const cancels = [
  ['its script', { script: 'WAIT' }, 'CANCELLED', undefined],
  ['what verifies it', { verify: 'WAIT' }, 'CANCELLED', { status: 'CANCELLED', exitCode: 143, attempts: 1 }],
  ['the rollback', { script: 'exit 6', rollback: 'WAIT' }, 'FAILED', undefined],
] as const

for (const [phase, texts, status, verified] of cancels)
  test(`a cancel while ${phase} runs neither starts nor ends a rollback`, async (t) => {
    const { base, runner, run } = await place(t)
    const { script = 'true', verify = 'true', rollback = 'true' } = texts as Record<string, string>
    const waiting = `touch ${base}/there; until [ -e ${base}/go ] || [ ! -d ${base} ]; do sleep 0.02; done`
    const text = (one: string) => (one === 'WAIT' ? waiting : one)
    const end = run(text(script), {
      ...checking(text(verify)),
      ...undoing(`touch ${base}/undoing; ${text(rollback)}; touch ${base}/undone`),
    })
    await until('it runs', () => existsSync(`${base}/there`))
    runner.cancel('gated')
    if (phase === 'the rollback') writeFileSync(`${base}/go`, '')
    const complete = await end
    t.is(complete.status, status)
    t.deepEqual(complete.verify, verified)
    t.is(existsSync(`${base}/undone`), phase === 'the rollback')
    t.deepEqual(complete.rollback, phase === 'the rollback' ? { status: 'SUCCESS', exitCode: 0 } : undefined)
  })

test('a cancel between two attempts ends at once', async (t) => {
  const { base, runner, run } = await place(t)
  const end = run('true', {
    ...checking(`touch ${base}/tried; exit 1`, 3, 3600),
    ...undoing(`touch ${base}/undone`),
  })
  const isWaiting = () => typeof runner.executions.get('gated')?.stopWaiting === 'function'
  await until('it waits for the second', isWaiting)
  runner.cancel('gated')
  const complete = await end
  t.is(complete.status, 'CANCELLED')
  t.deepEqual(complete.verify, { status: 'CANCELLED', exitCode: 1, attempts: 1 })
  t.false(existsSync(`${base}/undone`))
})

test('an older agent can read the journal once it has no entries of gates', async (t) => {
  const { base, journal, runner, run } = await place(t)
  await run('true', checking('true'))
  runner.release('gated')
  journal.close()
  t.notRegex(readFileSync(join(base, 'journal'), 'utf8'), /"e":"(gated|passed)"/)
  // The teardown closes it again.
  Object.assign(journal, { close: () => undefined })
})
