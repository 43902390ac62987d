import { Ajv } from 'ajv'
import test from 'ava'
import { serverVersion } from '../../../../src/disk/own-release.ts'
import { exampleOf } from '../../../../src/server/http/openapi/components.ts'
import { apiDocument } from '../../../../src/server/http/openapi/document.ts'
import { bodyAjv } from '../../../../src/server/http/validation.ts'
import { fetchDocument } from '../../../helpers/api/api-document.ts'
import { operationsOfTheApp } from '../../../helpers/api/operations.ts'
import { startTestServer } from '../../../helpers/servers/server.ts'

const routed = operationsOfTheApp()
const document = apiDocument(routed, '1.2.3') as any
const described: [string, any][] = Object.entries<any>(document.paths).flatMap(([path, methods]) =>
  Object.entries<any>(methods).map(
    ([method, operation]) => [`${method} ${path}`, operation] as [string, any],
  ),
)

test('each operation of the application is in the document once, with id, tag, summary and security', (t) => {
  const wanted = routed.map(
    ({ method, url }) => `${method.toLowerCase()} ${url.replaceAll(/:(\w+)/g, '{$1}')}`,
  )
  t.deepEqual(described.map(([route]) => route).sort(), wanted.sort())
  const ids = described.map(([, { operationId }]) => operationId)
  t.is(new Set(ids).size, ids.length)
  const tags = new Set(document.tags.map(({ name }: { name: string }) => name))
  for (const [route, { summary, description, tags: own, security }] of described) {
    t.regex(summary, /^\S.{5,}[^.]$/, route)
    t.regex(description, /^(For|Open to) .*\.$/, route)
    t.true(tags.has(own[0]), route)
    t.deepEqual(security, description.startsWith('Open') ? [] : [{ token: [] }], route)
  }
})

test('each body and each answer has an example that is valid by its own schema', (t) => {
  for (const { operation } of routed) {
    const { id, body, answer } = operation
    for (const [what, schema] of Object.entries({ body, answer })) {
      if (schema === undefined) continue
      const example = structuredClone(exampleOf(schema))
      t.not(example, undefined, `${id}: the ${what} has no example`)
      const validate = bodyAjv.compile(schema)
      t.true(validate(example), `${id} ${what}: ${bodyAjv.errorsText(validate.errors)}`)
    }
  }
})

test('each schema of a body or a query is a valid JSON Schema', (t) => {
  const ajv = new Ajv()
  for (const { operation } of routed)
    for (const schema of [operation.body, operation.query])
      if (schema !== undefined) t.true(ajv.validateSchema(schema), `${operation.id}: ${ajv.errorsText()}`)
  t.false(ajv.validateSchema({ type: 'text' }))
})

test('each operation shows a success and each of its errors by examples that match the document', async (t) => {
  const server = await startTestServer(t)
  const { document: fetched, operations, faultOf } = await fetchDocument(server)
  for (const operation of operations) {
    const { responses } = fetched.paths[operation.path][operation.method.toLowerCase()]
    const shown = new Set<string>()
    for (const [status, response] of Object.entries<any>(responses)) {
      const { content } =
        response.$ref === undefined ? response : fetched.components.responses[response.$ref.split('/').at(-1)]
      for (const [contentType, { example }] of Object.entries<any>(content ?? {})) {
        if (example === undefined) continue
        shown.add(status)
        const text = typeof example === 'string' ? example : JSON.stringify(example)
        t.is(faultOf(operation, { status: Number(status), contentType, text }), null)
      }
    }
    const withBody = Object.keys(responses).filter((status) => status !== '304')
    t.deepEqual([...shown], withBody, operation.id)
  }
})

test('bodies and answers have named schemas, and formats and records use standard terms', (t) => {
  const named = /^#\/components\/schemas\/\w+$/
  const json = 'application/json'
  // A name is missing if the file of the schema is not listed in src/server/http/openapi/components.ts.
  for (const [route, { requestBody, responses }] of described) {
    if (requestBody?.content[json]) t.regex(requestBody.content[json].schema.$ref ?? '', named, route)
    const { data } = (responses['200'] ?? responses['201']).content[json]?.schema.properties ?? {}
    if (data) t.regex(data.$ref ?? '', named, route)
  }
  const { schemas } = document.components
  for (const name of [
    'Host',
    'HostPage',
    'HostCreate',
    'HostPatch',
    'Script',
    'Cluster',
    'User',
    'Task',
    'TaskResult',
  ])
    t.truthy(schemas[name], name)
  t.deepEqual(schemas.Task.properties.results, {
    type: 'array',
    items: { $ref: '#/components/schemas/TaskResult' },
  })
  t.deepEqual(schemas.TaskSummary.properties.status, { $ref: '#/components/schemas/TaskStatus' })
  const text = JSON.stringify(document)
  t.deepEqual([...new Set(text.match(/"format":"[a-z][^"]*"/g))], ['"format":"date-time"'])
  t.notRegex(text, /patternProperties|"\$id"/)
  t.true(new RegExp(schemas.UserCreate.properties.username.pattern).test('maria'))
  t.false(new RegExp(schemas.ScriptCreate.properties.name.pattern).test(' \n'))
  t.false(new RegExp(schemas.ScriptCreate.properties.name.pattern).test('   '))
})

test('GET /api/openapi.json is public, contains the version, and answers a known ETag with 304', async (t) => {
  const server = await startTestServer(t)
  const first = await fetch(`${server.url}/api/openapi.json`)
  t.is(first.status, 200)
  t.is(first.headers.get('content-type'), 'application/json; charset=utf-8')
  t.is(first.headers.get('cache-control'), 'no-cache')
  const { openapi, info } = (await first.json()) as any
  t.is(openapi, '3.1.0')
  t.is(info.version, serverVersion())
  const etag = first.headers.get('etag') ?? ''
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`]) {
    const again = await fetch(`${server.url}/api/openapi.json`, { headers: { 'if-none-match': tag } })
    t.is(again.status, 304, tag)
    t.is(again.headers.get('etag'), etag)
  }
  const other = await fetch(`${server.url}/api/openapi.json`, { headers: { 'if-none-match': '"other"' } })
  t.is(other.status, 200)
})

test('the document shows /metrics as open if the server runs with --metrics-open', async (t) => {
  const server = await startTestServer(t, { metricsOpen: true })
  const { document: fetched } = await fetchDocument(server)
  t.deepEqual(fetched.paths['/metrics'].get.security, [])
})
