import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { notRun } from '../../../src/agent/executions/execution.ts'
import { Journal } from '../../../src/agent/executions/journal.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'

test('A06 a flipped bit anywhere in a journal is reported or changes nothing in its content', async (t) => {
  const path = join(await temporaryDirectory(t), 'journal')
  const at = new Date(0).toISOString()
  const journal = new Journal(path, Date.now)
  for (const taskId of ['a', 'b']) {
    journal.append({ e: 'received', taskId })
    journal.append({ e: 'ended', taskId, complete: notRun(taskId, at, { error: 'äh: no such user' }) })
  }
  journal.append({ e: 'acknowledged', taskId: 'a', at: journal.now() })
  journal.append({ e: 'cancelled', taskId: 'c', at: journal.now() })
  journal.close()
  const said = (found: Journal) => JSON.stringify([found.storeId, ...found.records.values()])
  const truth = said(journal)
  const whole = readFileSync(path)
  let told = 0
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const flipped = Buffer.from(whole)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    // A new file: a file system may write a replaced file's text to disk at once, which is slow.
    rmSync(path)
    writeFileSync(path, flipped)
    try {
      const opened = new Journal(path, Date.now)
      opened.close()
      if (said(opened) !== truth) return t.fail(`bit ${bit & 7} of byte ${bit >> 3} goes unnoticed`)
    } catch (error) {
      if (!/ is damaged: line \d, byte \d+$/.test((error as Error).message)) throw error
      told++
    }
  }
  t.true(told > whole.length * 6)
})
