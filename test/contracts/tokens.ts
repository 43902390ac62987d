import type { TestFn } from 'ava'
import { rejects } from './rejects.ts'
import type { ServicesOf } from './services-of.ts'

const day = 24 * 3600_000

/** Suite for every implementation of TokenService (contract §2, §3), for a caller who is ADMIN. */
export function tokensContract(test: TestFn, name: string, open: ServicesOf): void {
  test(`${name} tokens: the secret text is shown once; a list shows the other fields`, async (t) => {
    const { tokens } = await open(t)
    const made = await tokens.create({ name: 'ci' })
    t.regex(made.token, /^rsm_pat_[A-Za-z0-9_-]{43}$/)
    const { token, ...shown } = made
    t.like(shown, { name: 'ci', role: 'ADMIN' })
    const { content, totalElements } = await tokens.list({})
    t.deepEqual(content, [shown])
    t.is(totalElements, 1)
    t.false(JSON.stringify(content).includes(token))
  })

  test(`${name} tokens: a token lives 90 days by default`, async (t) => {
    const { tokens } = await open(t)
    const days = async (input: object) => {
      const { createdAt, expiresAt } = await tokens.create({ name: 'x', ...input })
      return (Date.parse(expiresAt) - Date.parse(createdAt)) / day
    }
    t.is(await days({}), 90)
    t.is(await days({ expiresInDays: 0.5 }), 0.5)
  })

  test(`${name} tokens: a role may be chosen; a removed token is not_found`, async (t) => {
    const { tokens } = await open(t)
    const { id, role } = await tokens.create({ name: 'reader', role: 'VIEWER' })
    t.is(role, 'VIEWER')
    t.deepEqual(await tokens.remove(id), { id })
    await rejects(t, 'not_found', tokens.remove(id))
    t.deepEqual((await tokens.list({})).content, [])
  })
}
