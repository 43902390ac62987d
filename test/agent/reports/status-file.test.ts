import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import type { Clock } from '../../../src/agent/clock.ts'
import type { Log } from '../../../src/agent/log.ts'
import { StatusFile, stateFileName } from '../../../src/agent/reports/status-file.ts'
import type { AgentState } from '../../../src/core/hosts/agent-state.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'

/** A clock that only `move` advances. */
class HandClock implements Clock {
  time = 0
  #due: { at: number; run: () => void }[] = []

  now = () => this.time
  monotonic = () => this.time

  after(wait: number, run: () => void): () => void {
    const timer = { at: this.time + wait, run }
    this.#due.push(timer)
    return () => {
      this.#due = this.#due.filter((each) => each !== timer)
    }
  }

  move(milliseconds: number): void {
    this.time += milliseconds
    const due = this.#due.filter(({ at }) => at <= this.time)
    this.#due = this.#due.filter(({ at }) => at > this.time)
    for (const { run } of due) run()
  }
}

async function fileOn(t: ExecutionContext, log: Log = () => {}) {
  const directory = await temporaryDirectory(t)
  const clock = new HandClock()
  const file = new StatusFile(directory, clock, log)
  const path = join(directory, stateFileName)
  const shown = () => (JSON.parse(readFileSync(path, 'utf8')) as AgentState).executions.running
  /** Changes with each write. */
  const inode = () => statSync(path).ino
  return { file, clock, directory, path, shown, inode }
}

const stateOf = (running: number) => ({ executions: { running } }) as AgentState

test('changes within 2 s are written together, and an unchanged status is not written', async (t) => {
  const { file, clock, path, shown, inode } = await fileOn(t)
  let running = 1
  await file.publish(() => stateOf(running))
  t.is(shown(), 1)
  const first = inode()
  for (running = 2; running < 5; running++) file.changed()
  clock.move(1999)
  // Longer than a write takes.
  for (let turn = 0; turn < 50; turn++) await stat(path)
  t.is(inode(), first)
  clock.move(1)
  await file.write()
  t.is(shown(), 5)
  const second = inode()
  file.changed()
  clock.move(2000)
  await file.write()
  t.is(inode(), second)
})

test('a requested write happens at once', async (t) => {
  const { file, shown } = await fileOn(t)
  await file.publish(() => stateOf(1))
  await file.publish(() => stateOf(2))
  t.is(shown(), 2)
})

test('a removed status file is never written again', async (t) => {
  const { file, clock, path } = await fileOn(t)
  void file.publish(() => stateOf(1))
  file.changed()
  await file.remove()
  clock.move(10_000)
  await file.write()
  t.is(statSync(path, { throwIfNoEntry: false }), undefined)
})

test('a status that cannot be written is logged, and the next write succeeds', async (t) => {
  const lines: string[] = []
  const { file, path, shown } = await fileOn(t, (level, message) => lines.push(`${level} ${message}`))
  mkdirSync(join(path, 'in the way'), { recursive: true })
  await file.publish(() => stateOf(1))
  t.deepEqual(lines, ['DEBUG could not write the status'])
  rmSync(path, { recursive: true })
  await file.write()
  t.is(shown(), 1)
})
