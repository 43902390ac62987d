import test from 'ava'
import type { Process } from '../../../src/agent/processes/processes.ts'
import { straysAmong } from '../../../src/agent/processes/strays.ts'

test('A07 strays of a script are later processes, adopted, in the same cgroup, and not of another execution', (t) => {
  const process_ = (pid: number, more: Partial<Process> = {}): Process => {
    const plain = { startTime: pid * 10, parent: 1, group: pid, session: pid, command: 'sh' }
    return { pid, ...plain, isUninterruptible: false, isZombie: false, tag: null, uid: null, ...more }
  }
  const all = [
    process_(99),
    process_(101),
    process_(102, { parent: 50 }),
    process_(103, { parent: 7 }),
    process_(104, { tag: 'a' }),
    process_(105, { tag: 'b' }),
    process_(106),
    process_(107),
  ]
  const origin = { mark: 'a', root: { pid: 100, startTime: 1000 }, uids: [7] }
  const place = { adopters: new Set([1, 7]), isNear: (pid: number) => pid !== 106 }
  const strays = straysAmong(all, [process_(107)], origin, place)
  t.deepEqual(
    strays.map(({ pid }) => pid),
    [101, 103, 104],
  )
})
