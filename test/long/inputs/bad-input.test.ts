import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import fc from 'fast-check'
import { bodyAjv, queryValidator } from '../../../src/server/http/validation.ts'
import { operationsOfTheApp } from '../../helpers/api/operations.ts'
import { badBodies, badIds, badQueries } from '../../helpers/faults/bad-input.ts'
import { type Answer, callerOf, openFixture, pathOf, send } from '../../helpers/faults/every-operation.ts'
import type { TestServer } from '../../helpers/servers/server.ts'

/** Inputs per operation; the continuous run uses more. */
const runs = Number(process.env['RSM_BAD_INPUTS'] ?? 1500)
const seed = Number(process.env['RSM_BAD_INPUT_SEED'] ?? Date.now() % 2 ** 31)
const atOnce = 16

const operations = operationsOfTheApp()
const withBody = operations.filter(({ operation }) => operation.body !== undefined)
const withQuery = operations.filter(({ operation }) => operation.query !== undefined)
const withId = operations.filter(({ url }) => url.includes(':'))

/** Names and sizes of the store's files, which a refused request must not change. */
async function storeSize(server: TestServer): Promise<string> {
  const directory = join(server.dataDir, 'store')
  const names = (await readdir(directory)).toSorted()
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size))
  return names.map((name, index) => `${name} ${sizes[index]}`).join('\n')
}

/** Checks that the response to bad input is an envelope that names the error and reveals no internals. */
function checkRefusal(t: ExecutionContext, { status, text }: Answer, what: string): void {
  const shown = `${what}\n→ ${status} ${text.slice(0, 500)}`
  if (status < 400 || status >= 500) t.fail(shown)
  const { code, message, errors } = JSON.parse(text) as {
    code: number
    message: string
    errors?: { field: string; message: string }[]
  }
  if (code !== status || message === '' || (errors && errors.some((fault) => fault.message === '')))
    t.fail(shown)
  if (/node_modules|\.js:\d|\bat \w+ \(|rsm-server-/.test(text)) t.fail(`reveals internals: ${shown}`)
}

/** Draws inputs and sends them in groups, reproducible by the seed; duplicates, about half, are sent once. */
async function drive(
  inputs: fc.Arbitrary<string>,
  count: number,
  work: (input: string) => Promise<void>,
): Promise<void> {
  const drawn = [...new Set(fc.sample(inputs, { numRuns: count, seed }))]
  for (let from = 0; from < drawn.length; from += atOnce)
    await Promise.all(drawn.slice(from, from + atOnce).map(work))
}

test(`bad bodies of every operation are 4xx with the error, and change nothing (seed ${seed})`, async (t) => {
  const fixture = await openFixture(t)
  for (const one of withBody) {
    const schema = one.operation.body
    const isGood = bodyAjv.compile(structuredClone(schema) as object)
    const good = (schema as { examples?: unknown[] }).examples?.[0]
    t.not(good, undefined, `${one.operation.id} has no example of its body`)
    const before = await storeSize(fixture.server)
    const token = callerOf(one, fixture)
    const path = pathOf(one, fixture)
    await drive(badBodies(good), runs, async (body) => {
      let parsed: unknown
      try {
        // A byte order mark may be skipped (RFC 8259 §8.1), as the server does.
        parsed = JSON.parse(body.replace(/^\ufeff/, ''))
      } catch {
        parsed = undefined
      }
      // A body that is valid by the schema may be carried out; another test sends those.
      if (body === '' || (parsed !== undefined && isGood(parsed))) return
      checkRefusal(
        t,
        await send(fixture, one.method, path, token, body),
        `${one.method} ${path} ${body.slice(0, 300)}`,
      )
    })
    t.is(await storeSize(fixture.server), before, `${one.operation.id} changed the store`)
  }
  t.pass()
})

test(`unusual bodies that the schema allows never break an operation (seed ${seed})`, async (t) => {
  const fixture = await openFixture(t)
  const { ids } = fixture
  for (const one of withBody) {
    // Each of these costs a password hash or ends the session of the caller.
    if (['login', 'createUser', 'updateUser', 'changePassword'].includes(one.operation.id)) continue
    const isGood = bodyAjv.compile(structuredClone(one.operation.body) as object)
    const good = (one.operation.body as { examples?: unknown[] }).examples?.[0]
    const token = callerOf(one, fixture)
    await drive(badBodies(good), Math.ceil(runs / 4), async (body) => {
      let parsed: unknown
      try {
        parsed = JSON.parse(body)
      } catch {
        return
      }
      if (!isGood(parsed)) return
      const { status, text } = await send(fixture, one.method, pathOf(one, fixture), token, body)
      t.true(status < 500, `${one.operation.id} ${body.slice(0, 300)} → ${status} ${text.slice(0, 300)}`)
    })
  }
  t.is((await fixture.server.api('GET', `/api/hosts/${ids['hosts']}`)).status, 200)
})

test(`bad queries of every operation are 4xx, unusual ones get a response (seed ${seed})`, async (t) => {
  const fixture = await openFixture(t)
  for (const one of withQuery) {
    const schema = one.operation.query as { properties?: object }
    const names = Object.keys(schema.properties ?? {})
    const isGood = queryValidator(structuredClone(schema))
    const token = callerOf(one, fixture)
    // A valid read may follow a stream forever, and a valid delete would delete.
    const sendable = one.method === 'GET'
    await drive(badQueries(names), runs, async (query) => {
      const given: Record<string, unknown> = {}
      const search = new URLSearchParams(query)
      for (const key of new Set(search.keys())) {
        const all = search.getAll(key)
        given[key] = all.length === 1 ? all[0] : all
      }
      const good = isGood(given) === true
      if (good && (!sendable || given['follow'] !== undefined || one.operation.id === 'followEvents')) return
      const path = `${pathOf(one, fixture)}?${query}`
      const answer = await send(fixture, one.method, path, token)
      if (answer.status < 200 || answer.status >= 500)
        t.fail(`${one.method} ${path} → ${answer.status} ${answer.text}`)
      if (!good && answer.status >= 300) checkRefusal(t, answer, `${one.method} ${path}`)
    })
  }
  t.pass()
})

test('an unknown id in a path is a 4xx of every operation, in whatever form', async (t) => {
  const fixture = await openFixture(t)
  const before = await storeSize(fixture.server)
  for (const one of withId)
    for (const id of badIds) {
      const path = pathOf(one, fixture, id)
      checkRefusal(
        t,
        await send(fixture, one.method, path, callerOf(one, fixture)),
        `${one.method} ${path.slice(0, 200)}`,
      )
    }
  t.is(await storeSize(fixture.server), before)
})

test('a body in another media type is 415, also a compressed one', async (t) => {
  const { server } = await openFixture(t)
  const before = await storeSize(server)
  for (const { method, url, operation } of withBody) {
    if (operation.allow.agent || url.includes(':')) continue
    for (const [name, value] of [
      ['content-type', 'text/plain'],
      ['content-type', 'application/x-www-form-urlencoded'],
      ['content-type', 'multipart/form-data; boundary=x'],
      ['content-type', 'application/json; charset=utf-16'],
      ['content-encoding', 'gzip'],
    ] as const) {
      const answer = await server.api(method, url, '{"name":"x"}', { [name]: value })
      t.true([400, 415].includes(answer.status), `${method} ${url} ${name}: ${value} → ${answer.status}`)
    }
  }
  t.is(await storeSize(server), before)
})
