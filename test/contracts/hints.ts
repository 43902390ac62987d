import type { TestFn } from 'ava'
import type { Hints } from '../../src/server/storage/ports/hints.ts'
import { until } from '../helpers/until.ts'

/** Suite for every implementation of Hints. Hints may come late or twice, so the tests require no more. */
export function hintsContract(test: TestFn, open: () => Promise<Hints>): void {
  test('a hint reaches the subscribers of its id and of its whole topic, and no others', async (t) => {
    const hints = await open()
    const heard: string[] = []
    hints.subscribe('host', 7, ({ id, change }) => heard.push(`of 7: ${id} ${change}`))
    hints.subscribe('host', null, ({ id, change }) => heard.push(`of all: ${id} ${change}`))
    hints.subscribe('cluster', 7, () => heard.push('of a cluster'))
    hints.publish('host', { id: 8, change: 'removed' })
    hints.publish('host', { id: 7, change: 'created' })
    const expected = ['of 7: 7 created', 'of all: 7 created', 'of all: 8 removed']
    await until('all hints arrive', () => expected.every((line) => heard.includes(line)))
    t.deepEqual([...new Set(heard)].toSorted(), expected)
  })

  test('ids are compared as a whole, and an ended subscription receives nothing', async (t) => {
    const hints = await open()
    const heard: string[] = []
    const end = hints.subscribe('task', 't1', ({ id }) => heard.push(id))
    hints.subscribe('task', 't11', ({ id }) => heard.push(id))
    end()
    hints.publish('task', { id: 't1', hostId: null, change: 'updated' })
    hints.publish('task', { id: 't11', hostId: 3, change: 'updated' })
    await until('the other hint arrives', () => heard.includes('t11'))
    t.false(heard.includes('t1'))
  })

  test('a subscriber that unsubscribes during a hint does not keep others from receiving it', async (t) => {
    const hints = await open()
    const heard = new Set<string>()
    const end = hints.subscribe('output', 't1', () => {
      heard.add('first')
      end()
    })
    hints.subscribe('output', 't1', () => heard.add('second'))
    hints.publish('output', { id: 't1' })
    await until('both subscribers get it', () => heard.size === 2)
    t.deepEqual([...heard].toSorted(), ['first', 'second'])
  })
}
