import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { operationsOfTheApp } from '../../helpers/api/operations.ts'
import { changedAt, pathsOf } from '../../helpers/faults/bad-input.ts'
import { callerOf, type Fixture, openFixture, pathOf } from '../../helpers/faults/every-operation.ts'
import { harmlessText, hostileTexts } from '../../helpers/faults/hostile-text.ts'

/** Characters that fit into a header of a request, and characters in a body that any field must refuse. */
const headSigns = 15_000
const bodySigns = 65_536
const inputs = Number(process.env['RSM_BAD_INPUTS'] ?? 1500)
/** Hostile texts for each header of each operation, in turns; the continuous run uses more. */
const textsOfAHeader = Math.ceil(inputs / 100)
/** Hostile texts for each field of a query or body. */
const textsOfAField = Math.ceil(inputs / 75)
/** Retries of a slow request, to rule out chance, garbage collection and first compilation. */
const tries = 5
/** Milliseconds that any request may take, enough to read a text of any number of words once. */
const always = 100
/** Factor by which a hostile text may take longer than a harmless one. */
const slower = 20

const operations = operationsOfTheApp()

/** Headers that programs send, proxies add and our routes read. */
const headers = [
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'cookie',
  'content-type',
  'content-encoding',
  'forwarded',
  'idempotency-key',
  'if-modified-since',
  'if-none-match',
  'last-event-id',
  'origin',
  'range',
  'referer',
  'user-agent',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-request-id',
]
const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
const upgradeHeaders = [
  'authorization',
  'origin',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-protocol',
]

interface Ask {
  readonly url: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

const kept = new Agent({ keepAlive: true, maxSockets: 1 })
/** Sends a request; resolves at the end of the response, or at the first piece of an event stream, which never ends. */
async function answered({ url, method, path, headers: sent, body }: Ask): Promise<void> {
  const { hostname, port } = new URL(url)
  await new Promise<void>((resolve, reject) => {
    const asked = request({ hostname, port, method, path, headers: sent, agent: kept })
    // The server closes a connection after a refused request, so a request on it is repeated.
    asked.on('error', (error: NodeJS.ErrnoException) =>
      asked.reusedSocket && error.code === 'ECONNRESET'
        ? resolve(answered({ url, method, path, headers: sent, ...(body === undefined ? {} : { body }) }))
        : reject(error),
    )
    asked.on('upgrade', (_, socket) => {
      socket.destroy()
      resolve()
    })
    asked.on('response', (response: IncomingMessage) => {
      response.on('error', () => {})
      if (response.headers['content-type']?.startsWith('text/event-stream') === true) asked.destroy()
      else response.resume().on('end', resolve)
      response.on('close', resolve)
    })
    asked.end(body)
  })
}

/** CPU milliseconds of this process, server and client, for a request; a busy machine does not add to them. */
async function spentOn(ask: Ask): Promise<number> {
  const start = process.cpuUsage()
  await answered(ask)
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/** Minimum of up to `times` tries; stops at the first of at most `enough`. */
async function leastOf(ask: Ask, times: number, enough: number): Promise<number> {
  // Elapsed time is enough for a fast request. Reading it is free, reading CPU time costs more than most requests.
  const start = performance.now()
  await answered(ask)
  const took = performance.now() - start
  if (took <= enough) return took
  let least = Number.POSITIVE_INFINITY
  for (let time = 0; time < times && least > enough; time++) least = Math.min(least, await spentOn(ask))
  return least
}

/** A field of a request, and a function that builds the request with a text in it. */
interface Place {
  readonly name: string
  readonly signs: number
  readonly with: (text: string) => Ask
  readonly texts: readonly string[]
}

/** Failures for places where a hostile text takes far longer than a harmless one of the same length. */
async function slowPlaces(
  t: ExecutionContext,
  places: readonly Place[],
): Promise<{ slow: string[]; asked: number }> {
  const slow: string[] = []
  let asked = 0
  for (const place of places) {
    // Restart the timeout at each place, to show the runner progress.
    t.timeout(100_000)
    for (const text of place.texts) {
      asked++
      const took = await leastOf(place.with(text), tries, always)
      if (took <= always) continue
      const harmless = await leastOf(place.with(harmlessText(place.signs)), tries, 0)
      if (took > slower * harmless)
        slow.push(
          `${place.name}: ${JSON.stringify(text.slice(0, 12))}… took ${took.toFixed(1)} ms, harmless text of this length ${harmless.toFixed(1)} ms`,
        )
    }
  }
  return { slow, asked }
}

/** Escapes a text and cuts it to `headSigns` characters. */
function escaped(text: string): string {
  const whole = encodeURIComponent(text).slice(0, headSigns)
  return whole.replace(/%[0-9A-F]?$/, '')
}

/** Whether a text is valid in a header; Node's client refuses other texts. */
const inHeader = (text: string) => !/[^\t\u0020-\u007e]/.test(text)

function placesOf(fixture: Fixture): Place[] {
  const places: Place[] = []
  const { url } = fixture.server
  const inHead = hostileTexts(headSigns).filter(inHeader)
  let turn = 0
  const drawn = (texts: readonly string[], count: number) =>
    Array.from({ length: Math.min(count, texts.length) }, () => texts[turn++ % texts.length] ?? '')
  const inQuery = hostileTexts(headSigns)
  const inBodies = hostileTexts(bodySigns)
  for (const one of operations) {
    const { method, operation } = one
    // An unknown id, so that a text that happens to be valid removes and ends nothing.
    const id = method === 'GET' ? undefined : '999999'
    const path = pathOf(one, fixture, id)
    const token = operation.id === 'logout' ? 'rsm_ses_none' : callerOf(one, fixture)
    const authorization = `Bearer ${token}`
    const { examples }: { examples?: unknown[] } = operation.body ?? {}
    const example = examples?.[0]
    const usual = { authorization, ...(example === undefined ? {} : { 'content-type': 'application/json' }) }
    const empty = example === undefined ? {} : { body: '{}' }
    for (const header of headers)
      places.push({
        name: `${operation.id} header ${header}`,
        signs: headSigns,
        with: (text) => ({ url, method, path, headers: { ...usual, [header]: text }, ...empty }),
        // Requests for files get all texts, because their headers say which copy a client has.
        texts: operation.unchanging === true ? inHead : drawn(inHead, textsOfAHeader),
      })
    const { properties = {} }: { properties?: object } = operation.query ?? {}
    for (const name of [...Object.keys(properties), null])
      places.push({
        name: `${operation.id} query ${name ?? 'name'}`,
        signs: headSigns,
        with: (text) => ({
          url,
          method,
          path: `${path}?${name === null ? `${escaped(text)}=1` : `${name}=${escaped(text)}`}`,
          headers: usual,
          ...empty,
        }),
        texts: drawn(inQuery, textsOfAField),
      })
    if (example === undefined) continue
    // An operation on one record reads its body only if the record exists.
    const whole = pathOf(one, fixture)
    for (const steps of pathsOf(example)) {
      const inBody = (body: unknown) => ({
        url,
        method,
        path: whole,
        headers: usual,
        body: JSON.stringify(body),
      })
      places.push({
        name: `${operation.id} body ${steps.join('.')}`,
        signs: bodySigns,
        with: (text) => inBody(changedAt(example, steps, () => text)),
        texts: drawn(inBodies, textsOfAField),
      })
    }
    places.push({
      name: `${operation.id} body, an unknown field`,
      signs: bodySigns,
      with: (text) => ({
        url,
        method,
        path: whole,
        headers: usual,
        body: JSON.stringify({ ...(example as object), [text]: text }),
      }),
      texts: drawn(inBodies, textsOfAField),
    })
  }
  for (const path of ['/ws/agent/x', '/ws/terminal/x'])
    for (const header of upgradeHeaders)
      places.push({
        name: `${path} header ${header}`,
        signs: headSigns,
        with: (text) => ({ url, method: 'GET', path, headers: { ...upgrade, [header]: text } }),
        texts: inHead,
      })
  places.push({
    name: 'a path',
    signs: headSigns,
    with: (text) => ({ url, method: 'GET', path: `/${escaped(text)}`, headers: {} }),
    texts: inQuery,
  })
  return places
}

// Serial, because CPU time is that of the whole process.
test.serial(
  'A08 no header, query or body field blocks the server longer than a harmless one of the same length',
  async (t) => {
    const { slow, asked } = await slowPlaces(t, placesOf(await openFixture(t)))
    t.true(asked > 5 * inputs, `only ${asked} requests were sent`)
    t.deepEqual(slow, [])
  },
)

test.serial('A08 the measurement detects a server that scans a header repeatedly', async (t) => {
  const server = createServer(({ headers: { 'if-none-match': known = '' } }, response) => {
    response.end(String(known.split(/\s*,\s*/).length))
  })
  server.listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { slow } = await slowPlaces(t, [
    {
      name: 'if-none-match',
      signs: headSigns,
      with: (text) => ({ url, method: 'GET', path: '/', headers: { 'if-none-match': text } }),
      texts: hostileTexts(headSigns).filter(inHeader),
    },
  ])
  t.true(slow.length > 0)
  t.true(
    slow.every((told) => /^if-none-match: "a?[ \\,]/.test(told)),
    slow.join('\n'),
  )
})
