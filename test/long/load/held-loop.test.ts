import { Agent, createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { operationsOfTheApp } from '../../helpers/api/operations.ts'
import { changedAt, pathsOf } from '../../helpers/faults/bad-input.ts'
import { callerOf, type Fixture, openFixture, pathOf } from '../../helpers/faults/every-operation.ts'
import { harmlessText, hostileTexts } from '../../helpers/faults/hostile-text.ts'

/** What fits into the headers of a request beside the others, and what of a body any field would have to refuse. */
const headSigns = 15_000
const bodySigns = 65_536
const inputs = Number(process.env['RSM_BAD_INPUTS'] ?? 1500)
/** Of the hostile texts each header of each operation gets so many, in turns; the continuous run takes more. */
const textsOfAHeader = Math.ceil(inputs / 100)
/** As many each field of a query or body gets. */
const textsOfAField = Math.ceil(inputs / 75)
/** How often what took long is asked again: chance, a collection of garbage or a first compilation passes. */
const tries = 5
/** Milliseconds that any request may take: a text that is read once, however many words it has. */
const always = 100
/** How many times a harmless text's a hostile one may take that takes longer. */
const slower = 20

const operations = operationsOfTheApp()

/** What programs send, proxies add and our routes read. */
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
/** Asks, and resolves with the end of the answer, or with the first piece of a stream, which never ends. */
async function answered({ url, method, path, headers: sent, body }: Ask): Promise<void> {
  const { hostname, port } = new URL(url)
  await new Promise<void>((resolve, reject) => {
    const asked = request({ hostname, port, method, path, headers: sent, agent: kept })
    // Who was refused for what he sent is parted with; the request that met that is asked once more.
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

/** Milliseconds of processor that this process, server and client, spends on a request: a busy machine adds nothing to it. */
async function spentOn(ask: Ask): Promise<number> {
  const start = process.cpuUsage()
  await answered(ask)
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

/** The least of so many tries, of which the first that is no more than `enough` is the last. */
async function leastOf(ask: Ask, times: number, enough: number): Promise<number> {
  // What takes no longer holds nobody longer. To read the time costs nothing; to read what was spent, more than most requests.
  const start = performance.now()
  await answered(ask)
  const took = performance.now() - start
  if (took <= enough) return took
  let least = Number.POSITIVE_INFINITY
  for (let time = 0; time < times && least > enough; time++) least = Math.min(least, await spentOn(ask))
  return least
}

/** A field of a request, and the request with a text in it. */
interface Place {
  readonly name: string
  readonly signs: number
  readonly with: (text: string) => Ask
  readonly texts: readonly string[]
}

/** The places whose hostile texts take far longer than a harmless one as long, in the words of a failure. */
async function slowPlaces(
  t: ExecutionContext,
  places: readonly Place[],
): Promise<{ slow: string[]; asked: number }> {
  const slow: string[] = []
  let asked = 0
  for (const place of places) {
    // For each place anew, so that the runner hears that it goes on.
    t.timeout(100_000)
    for (const text of place.texts) {
      asked++
      const took = await leastOf(place.with(text), tries, always)
      if (took <= always) continue
      const harmless = await leastOf(place.with(harmlessText(place.signs)), tries, 0)
      if (took > slower * harmless)
        slow.push(
          `${place.name}: ${JSON.stringify(text.slice(0, 12))}… took ${took.toFixed(1)} ms, harmless text as long ${harmless.toFixed(1)} ms`,
        )
    }
  }
  return { slow, asked }
}

/** As many signs as fit once they are escaped. */
function escaped(text: string): string {
  const whole = encodeURIComponent(text).slice(0, headSigns)
  return whole.replace(/%[0-9A-F]?$/, '')
}

/** What a header can hold; Node's client refuses the rest. */
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
    // Nothing is to be removed or ended by what happens to be good.
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
        // Whoever has a file says so in a header: those are read by all.
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
    // Of an operation on one record the body counts only where there is that record.
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

// One after the other: processor time is that of the whole process.
test.serial(
  'A08 no header, query or field of a body holds the server longer than a harmless one as long',
  async (t) => {
    const { slow, asked } = await slowPlaces(t, placesOf(await openFixture(t)))
    t.true(asked > 5 * inputs, `only ${asked} were asked`)
    t.deepEqual(slow, [])
  },
)

test.serial('A08 the measure tells a server that goes over a header again and again', async (t) => {
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
