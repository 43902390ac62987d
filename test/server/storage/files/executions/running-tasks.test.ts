import test from 'ava'
import fc from 'fast-check'
import { RunningTask } from '../../../../../src/server/storage/files/executions/running-tasks.ts'
import { execution, task } from '../../../../helpers/servers/store-records.ts'

const hosts = 4
const executions = () => Array.from({ length: hosts }, (_, position) => execution('t1', position))

test('changes since any cursor are returned, however often executions change', (t) => {
  fc.assert(
    fc.property(fc.array(fc.nat(hosts - 1), { maxLength: 60 }), (changed) => {
      const running = new RunningTask(task('t1'), executions(), new Map())
      const cursors = [0]
      for (const position of changed) {
        running.apply({ ...execution('t1', position), named: true })
        cursors.push(running.changes(0).cursor)
      }
      for (const [at, cursor] of cursors.entries()) {
        const positions = running.changes(cursor).executions.map(({ position }) => position)
        const inOrder = (all: Iterable<number>) => [...all].toSorted((a, b) => a - b)
        t.deepEqual(inOrder(positions), inOrder(new Set(changed.slice(at))))
      }
      t.deepEqual(running.changes(Number.POSITIVE_INFINITY).executions, [])
    }),
  )
})
