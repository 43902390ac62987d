import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { Journal } from '../../src/agent/journal.ts'
import { temporaryDirectory } from '../helpers/agent.ts'
import { refuse } from '../helpers/refusing-system.ts'
import { request, runnerOn } from '../helpers/runner.ts'

// One after the other: what the system refuses, it refuses to all of this file.
for (const code of ['EMFILE', 'ENOSPC'])
  test.serial(`a script whose spool can't be watched (${code}) runs, and its output is seen`, async (t) => {
    const base = await temporaryDirectory(t)
    refuse(t, 'watch', code)
    const directory = join(base, 'executions')
    const { runner } = runnerOn(t, directory, new Journal(join(base, 'journal'), Date.now))
    let chunks = 0
    const seen = new Promise<void>((resolve) => {
      runner.subscribe({
        changed(execution) {
          if (execution.run && execution.output().cut()) chunks += 1
          if (chunks > 0 || execution.complete) resolve()
        },
        answer: () => {},
      })
    })
    const script = `sleep 0.3; echo seen; while [ ! -e ${base}/go ]; do sleep 0.05; done; exit 3`
    await runner.execute(request('once', script))
    await seen
    t.is(chunks, 1)
    t.is(runner.executions.get('once')?.state, 'RUNNING')
    writeFileSync(`${base}/go`, '')
    while (runner.executions.get('once')?.state !== 'EXITED') await delay(10)
    const complete = runner.executions.get('once')?.complete
    t.is(complete?.exitCode, 3)
    t.is(complete?.error, null)
  })

test.serial(
  'an execution that can not be taken up now is taken up later, and the others at once',
  async (t) => {
    const base = await temporaryDirectory(t)
    const directory = join(base, 'executions')
    const path = join(base, 'journal')
    const first = runnerOn(t, directory, new Journal(path, Date.now), 2)
    const script = `while [ ! -e ${base}/go ]; do sleep 0.05; done; exit 4`
    for (const taskId of ['one', 'two']) await first.runner.execute(request(taskId, script))
    await first.runner.stop()
    // Twice it is asked whether they began at all, and then for the one that is taken up first.
    let asked = 0
    const { runner, ended } = runnerOn(t, directory, new Journal(path, Date.now), 2, () => ++asked === 3)
    await runner.recover()
    t.is(runner.executions.get('one')?.state, 'RUNNING')
    t.is(runner.executions.get('one')?.run, null)
    t.not(runner.executions.get('two')?.run, null)
    writeFileSync(`${base}/go`, '')
    t.is((await ended('one')).exitCode, 4)
    t.is((await ended('two')).exitCode, 4)
  },
)
