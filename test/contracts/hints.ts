import type { TestFn } from 'ava'
import type { Hints } from '../../src/server/storage/ports/hints.ts'
import { until } from '../helpers/until.ts'

/** What every implementation of Hints does. They may come late or twice, so that is all that can be asked. */
export function hintsContract(test: TestFn, open: () => Promise<Hints>): void {
  test('a hint comes to who listens to its id and to who listens to all of its topic, and to nobody else', async (t) => {
    const hints = await open()
    const heard: string[] = []
    hints.subscribe('host', 7, ({ id, change }) => heard.push(`of 7: ${id} ${change}`))
    hints.subscribe('host', null, ({ id, change }) => heard.push(`of all: ${id} ${change}`))
    hints.subscribe('cluster', 7, () => heard.push('of a cluster'))
    hints.publish('host', { id: 8, change: 'removed' })
    hints.publish('host', { id: 7, change: 'created' })
    const expected = ['of 7: 7 created', 'of all: 7 created', 'of all: 8 removed']
    await until('all are heard', () => expected.every((line) => heard.includes(line)))
    t.deepEqual([...new Set(heard)].toSorted(), expected)
  })

  test('an id is compared whole, and a subscription that has ended hears nothing', async (t) => {
    const hints = await open()
    const heard: string[] = []
    const end = hints.subscribe('task', 't1', ({ id }) => heard.push(id))
    hints.subscribe('task', 't11', ({ id }) => heard.push(id))
    end()
    hints.publish('task', { id: 't1', hostId: null, change: 'updated' })
    hints.publish('task', { id: 't11', hostId: 3, change: 'updated' })
    await until('the other is heard', () => heard.includes('t11'))
    t.false(heard.includes('t1'))
  })

  test('who stops listening while a hint is told keeps nobody else from hearing it', async (t) => {
    const hints = await open()
    const heard = new Set<string>()
    const end = hints.subscribe('output', 't1', () => {
      heard.add('first')
      end()
    })
    hints.subscribe('output', 't1', () => heard.add('second'))
    hints.publish('output', { id: 't1' })
    await until('both have heard it', () => heard.size === 2)
    t.deepEqual([...heard].toSorted(), ['first', 'second'])
  })
}
