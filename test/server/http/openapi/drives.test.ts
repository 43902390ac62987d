import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'ava'
import { type DocumentedOperation, fetchDocument, type Received } from '../../../helpers/api/api-document.ts'
import { type Call, drives, startWorld, type World } from '../../../helpers/api/api-drives.ts'

type Operation = DocumentedOperation

const callsOf = async (id: string, world: World): Promise<Call[]> => {
  const calls = await drives[id]?.(world)
  return calls === undefined ? [] : [calls].flat()
}

function urlOf({ path }: Operation, { path: values = {}, query }: Call): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => String(values[name]))
  return query === undefined ? filled : `${filled}?${query}`
}

async function received({ server }: World, operation: Operation, call: Call): Promise<Received> {
  const { body, headers, endless, token = server.token } = call
  const leave = new AbortController()
  const response = await fetch(`${server.url}${urlOf(operation, call)}`, {
    method: operation.method,
    signal: leave.signal,
    headers: {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const contentType = response.headers.get('content-type') ?? ''
  const { status } = response
  if (!endless || status !== 200) return { status, contentType, text: await response.text() }
  const first = await response.body?.getReader().read()
  leave.abort()
  return { status, contentType, text: new TextDecoder().decode(first?.value) }
}

/** The only invalid call of an operation without query and body: a header that is not valid HTTP. */
async function malformed({ server }: World, operation: Operation, call: Call): Promise<Received> {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.end(`${operation.method} ${urlOf(operation, call)} HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n`)
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  await once(socket, 'close')
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const contentType = /^content-type: (.*)$/im.exec(head)?.[1] ?? ''
  return { status: Number(head.split(' ')[1]), contentType, text: body }
}

const isOpen = ({ security }: Operation) => security.length === 0
const takesQuery = ({ parameters }: Operation) => parameters.some((parameter) => parameter.in === 'query')

/** A call for each error that follows from the operation itself, by expected status. */
function wrongCalls(operation: Operation, call: Call, { enrollment, viewer }: World): [number, Call][] {
  const wrong: [number, Call][] = []
  if (!isOpen(operation)) {
    wrong.push([401, { ...call, token: '' }])
    wrong.push([403, { ...call, token: operation.id === 'registerAgent' ? viewer : enrollment }])
  }
  if (call.path) {
    const nowhere = Object.keys(call.path).map((name) => [name, name === 'id' ? 999_999 : 'nosuch'])
    wrong.push([404, { ...call, path: Object.fromEntries(nowhere) }])
  }
  if (operation.takesBytes)
    wrong.push(
      [415, { ...call, body: 'a=b', headers: { 'content-type': 'text/plain' } }],
      [400, { ...call, query: 'nosuch=1' }],
    )
  else if (operation.hasBody) {
    wrong.push([413, { ...call, body: JSON.stringify({ a: 'x'.repeat(2 * 1024 * 1024) }) }])
    wrong.push([415, { ...call, body: 'a=b', headers: { 'content-type': 'text/plain' } }])
    wrong.push([400, { ...call, body: { nosuch: 1 } }])
  } else if (takesQuery(operation)) wrong.push([400, { ...call, query: 'nosuch=1' }])
  return wrong
}

test('exactly the operations of the document exist, and answer as documented, in every media type', async (t) => {
  const world = await startWorld(t)
  const { operations, faultOf } = await fetchDocument(world.server)
  t.deepEqual(operations.map(({ id }) => id).sort(), Object.keys(drives).sort())
  for (const operation of operations) {
    const seen = new Set<string>()
    for (const call of await callsOf(operation.id, world)) {
      const answer = await received(world, operation, call)
      t.true(answer.status < 300, `${operation.id}: ${answer.status} ${answer.text}`)
      t.is(faultOf(operation, answer), null)
      seen.add(answer.contentType.split(';')[0] ?? '')
    }
    t.deepEqual([...seen].sort(), [...(operation.media['200'] ?? operation.media['201'] ?? [])].sort())
  }
})

test('every error that follows from an operation is in the document, and matches it', async (t) => {
  const world = await startWorld(t)
  const { operations, faultOf } = await fetchDocument(world.server)
  for (const operation of operations) {
    const [call = {}] = await callsOf(operation.id, world)
    for (const [status, wrong] of wrongCalls(operation, call, world)) {
      const answer = await received(world, operation, wrong)
      t.is(answer.status, status, `${operation.id}: ${answer.text}`)
      t.is(faultOf(operation, answer), null)
    }
    if (operation.hasBody || takesQuery(operation)) continue
    const answer = await malformed(world, operation, call)
    t.is(answer.status, 400, operation.id)
    t.is(faultOf(operation, answer), null)
  }
})

test('a name in use and a late cancel are a documented 409, a wrong password a 401', async (t) => {
  const world = await startWorld(t)
  const { operations, faultOf } = await fetchDocument(world.server)
  const byId = new Map(operations.map((operation) => [operation.id, operation]))
  for (const id of ['createHost', 'createScript', 'createCluster', 'createUser']) {
    const operation = byId.get(id)
    if (!operation) throw new Error(`no operation ${id}`)
    const [call = {}] = await callsOf(id, world)
    await received(world, operation, call)
    const again = await received(world, operation, call)
    t.is(again.status, 409, id)
    t.is(faultOf(operation, again), null)
  }
  const cancelTask = byId.get('cancelTask') as Operation
  const [ofFinishedTask = {}] = await callsOf('getTask', world)
  const tooLate = await received(world, cancelTask, ofFinishedTask)
  t.is(tooLate.status, 409)
  t.is(faultOf(cancelTask, tooLate), null)
  const login = byId.get('login') as Operation
  const refused = await received(world, login, { body: { username: 'admin', password: 'wrong' } })
  t.is(refused.status, 401)
  t.is(faultOf(login, refused), null)
})

test('unchanging resources answer a known ETag with 304, as documented', async (t) => {
  const world = await startWorld(t)
  const { operations, faultOf } = await fetchDocument(world.server)
  const unchanging = operations.filter(({ media }) => media['304'] !== undefined)
  t.deepEqual(unchanging.map(({ id }) => id).sort(), [
    'getConsoleFile',
    'getDocs',
    'getDocsFile',
    'getInstallScript',
    'getOpenapi',
  ])
  for (const operation of unchanging)
    for (const call of await callsOf(operation.id, world)) {
      const answer = await received(world, operation, { ...call, headers: { 'if-none-match': '*' } })
      t.is(answer.status, 304)
      t.is(faultOf(operation, answer), null)
    }
})

test('an answer with an additional or a missing field does not match the document', async (t) => {
  const world = await startWorld(t)
  const { operations, faultOf } = await fetchDocument(world.server)
  const getMe = operations.find(({ id }) => id === 'getMe') as Operation
  const answer = await received(world, getMe, {})
  const changed = (change: (data: Record<string, unknown>) => void): Received => {
    const envelope = JSON.parse(answer.text) as { data: Record<string, unknown> }
    change(envelope.data)
    return { ...answer, text: JSON.stringify(envelope) }
  }
  t.is(faultOf(getMe, answer), null)
  t.regex(
    faultOf(
      getMe,
      changed((data) => {
        data['passwordHash'] = 'x'
      }),
    ) ?? '',
    /additional properties/,
  )
  t.regex(
    faultOf(
      getMe,
      changed((data) => delete data['email']),
    ) ?? '',
    /required/,
  )
  t.regex(faultOf(getMe, { ...answer, status: 418 }) ?? '', /does not document 418/)
  t.regex(faultOf(getMe, { ...answer, contentType: 'text/html' }) ?? '', /does not document text\/html/)
})
