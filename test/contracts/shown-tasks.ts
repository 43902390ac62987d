import type { TestFn } from 'ava'
import type { PageQuery } from '../../src/core/protocol/http/common.ts'
import { countsOf, isFinal } from '../../src/core/tasks/task.ts'
import type { OpenGround } from '../helpers/servers/grounds.ts'
import { startInsides } from '../helpers/servers/services.ts'

/** Reads that make up the answer about a task. */
const reads = {
  store: ['get'],
  executions: ['ofTask', 'ofHosts', 'counts'],
  links: ['holders'],
  results: ['read'],
} as const

/** Runs `before` ahead of each of these reads. */
function interposed(open: OpenGround, before: () => Promise<void>): OpenGround {
  const wrap = <P extends object>(part: P, names: readonly string[]): P =>
    new Proxy(part, {
      get(target, name) {
        const value = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        if (!names.includes(String(name))) return value.bind(target)
        return async (...given: unknown[]) => {
          await before()
          return value.apply(target, given)
        }
      },
    })
  return async (directory, seen) => {
    const ground = await open(directory, (store) => seen(wrap(store, reads.store)))
    return {
      ...ground,
      executions: wrap(ground.executions, reads.executions),
      links: wrap(ground.links, reads.links),
      results: wrap(ground.results, reads.results),
    }
  }
}

/** A task as `GET /api/tasks/{taskId}` shows it, on every store. */
export function shownTasksContract(test: TestFn, open: OpenGround): void {
  test('a task that ends between any two reads is shown with status, counts and results that agree', async (t) => {
    /** Reads until the task ends; null: it continues. */
    let left: number | null = null
    let end = async () => undefined as void
    const { services, engine } = await startInsides(
      t,
      interposed(open, async () => {
        if (left === null || left-- > 0) return
        left = null
        await end()
      }),
    )
    const hosts = [
      await services.hosts.create({ hostname: 'a', ip: '192.0.2.1' }),
      await services.hosts.create({ hostname: 'b', ip: '192.0.2.2' }),
    ]
    const target = { hostIds: hosts.map(({ id }) => id) }
    /** Shows a new task that ends before the read of this number; false: there are fewer reads. */
    async function showEnding(at: number, query: PageQuery | undefined): Promise<boolean> {
      const { taskId } = await services.tasks.create({
        script: { content: 'true' },
        target,
        queueSeconds: 3600,
      })
      end = async () => {
        await engine.cancel(taskId)
        await engine.finished(taskId)
      }
      left = at
      const { status, counts, results } = await services.tasks.get(taskId, query)
      const hasEnded = left === null
      left = null
      const all = Object.values(counts).reduce((sum, count) => sum + count, 0)
      t.is(all, target.hostIds.length, `counts, read ${at}`)
      if (status !== 'RUNNING') {
        t.is(counts.CANCELLED, all)
        for (const result of results)
          t.true(isFinal(result.status), `${status} with ${result.status}, read ${at}`)
      }
      if (query === undefined) t.deepEqual(counts, countsOf(results), `read ${at}`)
      await engine.cancel(taskId).catch(() => undefined)
      return hasEnded
    }
    for (const query of [undefined, { page: 0, size: 1 }]) {
      let at = 0
      while (await showEnding(at, query)) at++
      t.true(at >= 4, `${at} reads`)
    }
  })
}
