import type { TestFn } from 'ava'
import { rejects } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

/** Suite for every implementation of SessionService (contract §2, §3), for a caller with a session. */
export function sessionsContract(test: TestFn, name: string, open: ServicesOf): void {
  test(`${name} sessions: the caller's own session is listed and marked; an unknown one is not_found`, async (t) => {
    const { sessions } = await open(t)
    const { content, totalElements } = await sessions.list({})
    t.is(totalElements, content.length)
    t.is(content.filter(({ current }) => current).length, 1)
    await rejects(t, 'not_found', sessions.remove(999_999))
    await sessions.removeOthers()
    t.deepEqual(
      (await sessions.list({})).content.map(({ current }) => current),
      [true],
    )
  })
}
