import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { Journal } from '../../../src/agent/executions/journal.ts'
import type { Entry } from '../../../src/agent/executions/journaled.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { request, runnerOn } from '../../helpers/agents/runner.ts'
import { until } from '../../helpers/until.ts'

/** A journal whose syncs end when the test settles them. */
class HeldJournal extends Journal {
  readonly held: { resolve: () => void; reject: (error: Error) => void }[] = []
  #isHeld = true

  override sync(): Promise<void> {
    if (!this.#isHeld) return super.sync()
    return new Promise((resolve, reject) => this.held.push({ resolve, reject }))
  }

  letGo(): void {
    this.#isHeld = false
    for (const { resolve } of this.held) resolve()
  }
}

/** A journal on a disk that is full for entries of these kinds. */
class FullJournal extends Journal {
  readonly refused: readonly Entry['e'][]

  constructor(path: string, refused: readonly Entry['e'][]) {
    super(path, Date.now)
    this.refused = refused
  }

  override append(entry: Entry): void {
    if (this.refused.includes(entry.e)) throw new Error('ENOSPC: no space left on device, write')
    super.append(entry)
  }
}

/** A path so deep that `request.json` fits into the longest path (4095 bytes) and its temporary name does not. */
function deep(base: string, taskId: string): string {
  const length = 4095 - `/${taskId}/request.json`.length - 4
  let path = base
  while (length - path.length > 250) path = join(path, 'd'.repeat(200))
  return join(path, 'd'.repeat(length - path.length - 1))
}

for (const [title, place] of [
  ['is being written', (base: string) => join(base, 'executions')],
  ['fails', (base: string) => deep(base, 'second')],
] as const)
  test(`an execution that starts while its copy ${title} runs, and leaves no copy`, async (t) => {
    const base = await temporaryDirectory(t)
    const journal = new HeldJournal(join(base, 'journal'), Date.now)
    const directory = place(base)
    const { runner, ended } = runnerOn(t, directory, journal)
    t.teardown(() => journal.letGo())
    void runner.execute(request('first'))
    const kept = runner.execute(request('second', 'exit 3'))
    journal.held[0]?.reject(new Error('the disk is broken'))
    await kept
    t.is(runner.executions.get('first')?.complete?.status, 'FAILED')
    t.is(runner.executions.get('second')?.state, 'RUNNING')
    t.false(existsSync(join(directory, 'second', 'request.json')))
    const end = ended('second')
    journal.letGo()
    const complete = await end
    t.is(complete.exitCode, 3)
    t.is(complete.error, null)
  })

test('a cancel while the copy of a gated execution is written ends it at once, even if another one runs', async (t) => {
  const base = await temporaryDirectory(t)
  const journal = new HeldJournal(join(base, 'journal'), Date.now)
  const { runner, ended } = runnerOn(t, join(base, 'executions'), journal)
  t.teardown(() => journal.letGo())
  void runner.execute(request('first', 'sleep 5'))
  const rollback = { script: 'true', scriptType: 'BASH' as const, timeout: 30 }
  void runner.execute({ ...request('gated', `touch ${base}/began`), rollback })
  runner.cancel('gated')
  t.is(runner.executions.get('gated')?.state, 'QUEUED')
  const end = ended('gated')
  journal.letGo()
  t.is((await end).status, 'CANCELLED')
  t.is(runner.executions.get('first')?.state, 'RUNNING')
  t.false(existsSync(join(base, 'began')))
})

test('a script does not begin if a full disk keeps its process out of the journal', async (t) => {
  const base = await temporaryDirectory(t)
  const journal = new FullJournal(join(base, 'journal'), ['spawned'])
  const { runner, ended } = runnerOn(t, join(base, 'executions'), journal)
  await runner.execute(request('once', `echo started >> ${base}/starts`))
  const complete = await ended('once')
  t.is(complete.status, 'FAILED')
  t.regex(complete.error ?? '', /could not be started: ENOSPC/)
  const exit = join(base, 'executions', 'once', 'exit')
  await until('the refusal is written', () => readFileSync(exit, 'latin1').startsWith('never'))
  t.false(existsSync(`${base}/starts`))
})

const refusals: [Entry['e'][], string, number][] = [
  [[], 'SUCCESS', 0],
  [['acknowledged'], 'SUCCESS', 0],
  [['ended'], 'LOST', 255],
  [['ended', 'acknowledged'], 'LOST', 255],
]
for (const [refused, status, exitCode] of refusals)
  test(`a completed script never starts again, even if the disk refuses [${refused.join(', ')}]: ${status}`, async (t) => {
    const base = await temporaryDirectory(t)
    const journal = new FullJournal(join(base, 'journal'), refused)
    const { runner, answers, ended } = runnerOn(t, join(base, 'executions'), journal)
    const again = request('once', `echo started >> ${base}/starts`)
    await runner.execute(again)
    t.is((await ended('once')).status, 'SUCCESS')
    runner.release('once')
    await runner.execute(again)
    t.false(runner.executions.has('once'))
    t.is(answers.length, 1)
    t.is(answers[0]?.status, status as 'LOST')
    t.is(answers[0]?.exitCode, exitCode)
    t.is(readFileSync(`${base}/starts`, 'utf8'), 'started\n')
  })
