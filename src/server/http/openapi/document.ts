import { may, rights, roles } from '../../../core/permissions.ts'
import { Id, OpaqueId, Type } from '../../../core/protocol/http/common.ts'
import type { Allow } from '../auth.ts'
import type { Media, Operation, Tag } from '../operation.ts'
import { type Components, createComponents, exampleOf, type Schema } from './components.ts'
import {
  errorCodes,
  errorComponent,
  errorReferences,
  errorSchemas,
  type ResponseErrorCode,
} from './errors.ts'

/** Conventions of every operation (contract §1), for the document's first page. */
const conventions = `Runs shell scripts on many hosts, shows the output live, and keeps the result.

**Envelope.** Every answer in JSON is \`{code, message, data}\`, or \`{code, message, errors?}\` when it fails; \`code\`
is the HTTP status and \`errors\` names every field at fault. Other media types have no envelope.

**Ids** are positive integers, ascending and never reused; a \`taskId\` is opaque text that sorts by time.

**Times** are ISO 8601 in UTC with milliseconds. \`timeout\`, \`uptime\`, \`heartbeatInterval\` and \`metricsInterval\`
are seconds, \`duration\` is milliseconds.

**Lists** take \`page\`, from 0, and \`size\`, 1 to 500 and 20 by default; a page past the end is empty.

**Bodies** of users' calls are closed: an unknown field is a 400 that names it. \`PATCH\` is a JSON merge
patch (RFC 7396): objects merge, \`null\` removes. A body may be omitted if none of it is required.

**Order of checks:** 401, 403, 404 and 405, 413 and 415, 400, 409. An unsupported method on a known path is 405,
with \`Allow\`. Every answer has \`X-Request-Id\`: the caller's own, if it is well-formed.

A 2xx on a write means that the write is on disk.`

const tagDescriptions: Record<Tag, string> = {
  agents: 'Calls of agents: registration, heartbeat, metrics, configuration.',
  audit: 'Who did what, and when.',
  authentication: 'Logging in and out, and the current user.',
  clusters: 'Named groups of hosts: listed by id, or chosen by a selector.',
  'enrollment tokens': 'Tokens with which new agents register.',
  events: 'Changes as they happen.',
  files: 'Uploads that tasks copy to hosts or pass to scripts as stdin.',
  hosts: 'The hosts that scripts run on, and their state.',
  schedules: 'Scripts and copies at set times.',
  scripts: 'Stored scripts, with their versions.',
  server: 'The server itself: health, metrics, and this document.',
  tasks: 'Runs of a script on hosts: start, watch, cancel, retry.',
  terminals: 'Interactive sessions on hosts, and their recordings.',
  tokens: 'Personal access tokens, for pipelines.',
  users: 'Who may use the server.',
  webhooks: 'Events sent to URLs, and their deliveries.',
}

/** The only kind of credential; its prefix names its type (contract §2). */
const securitySchemes = {
  token: {
    type: 'http',
    scheme: 'bearer',
    description: `\`Authorization: Bearer TOKEN\`. The prefix of a token says what it is: \`rsm_ses_\` a session, from
\`POST /api/auth/login\`; \`rsm_pat_\` a personal access token, for pipelines, from \`POST /api/tokens\`; \`rsm_agt_\` an
agent, from \`POST /api/agent/register\`; \`rsm_enr_\` an enrollment, from \`POST /api/enrollment-tokens\`.`,
  },
}

/**
 * The API's own document: OpenAPI 3.1 (contract §3).
 *
 * Generated from the declared operations and the schemas that validate. @fastify/swagger would not help: it needs
 * `schema.response`, which Fastify would compile for each route, and names as `$id`, which both ajv instances would
 * register. It knows neither the envelope nor the errors that follow from a declaration.
 */
export function apiDocument(operations: readonly RoutedOperation[], version: string): object {
  const components = createComponents()
  const used = new Set<ResponseErrorCode>()
  const paths: Record<string, Record<string, object>> = {}
  for (const routed of operations) {
    const { description, errors } = describeOperation(routed, components)
    for (const code of errors) used.add(code)
    const path = (paths[templated(routed.url)] ??= {})
    path[routed.method.toLowerCase()] = description
  }
  const tags = Object.entries(tagDescriptions)
    .filter(([name]) => operations.some(({ operation }) => operation.tag === name))
    .map(([name, description]) => ({ name, description }))
  const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)
  const schemas = Object.entries({ ...components.schemas, ...errorSchemas }).sort(byName)
  return {
    openapi: '3.1.0',
    info: { title: 'rsm', version, description: conventions, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'The server that this document comes from' }],
    tags,
    paths,
    components: {
      securitySchemes,
      responses: Object.fromEntries([...used].sort().map(errorComponent)),
      schemas: Object.fromEntries(schemas),
    },
  }
}

export interface RoutedOperation {
  method: string
  /** In Fastify's syntax: `/api/hosts/:id`. */
  url: string
  operation: Operation
}

/** Path parameters; a name means the same in every path. */
const pathParameters: Record<string, { schema: Schema; description: string }> = {
  id: { schema: Id, description: 'The id of the record' },
  version: { schema: Type.Integer({ minimum: 1 }), description: 'A version of the script, from 1' },
  taskId: { schema: OpaqueId, description: 'The id of the task' },
  fileId: { schema: OpaqueId, description: 'The id of the file' },
  hostId: { schema: Id, description: 'The id of the host' },
  sessionId: { schema: OpaqueId, description: 'The id of the terminal session' },
  file: { schema: Type.String(), description: 'The name of a file of the page' },
}

const bytesBody = {
  required: false,
  content: {
    'application/octet-stream': { schema: { type: 'string', contentMediaType: 'application/octet-stream' } },
  },
}

const entityTag = {
  ETag: { description: 'Identifies these bytes (RFC 9110 §8.8.3)', schema: { type: 'string' } },
}

function describeOperation(
  routed: RoutedOperation,
  components: Components,
): { description: object; errors: ResponseErrorCode[] } {
  const { url, operation } = routed
  const { id, tag, summary, allow, body, bytes, audit } = operation
  const errors = errorCodes(url, operation)
  const parameters = parametersOf(routed, components)
  const audited = audit ? ` Leaves \`${audit.action}\` in the audit log.` : ''
  const description = {
    operationId: id,
    tags: [tag],
    summary,
    description: callers(allow) + audited,
    security: allow.open ? [] : [{ token: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: requestBody(body, components) }),
    ...(bytes && { requestBody: bytesBody }),
    responses: { ...success(operation, components), ...errorReferences(errors) },
  }
  return { description, errors }
}

function parametersOf({ url, operation: { query, headers = {} } }: RoutedOperation, { refer }: Components) {
  const inPath = [...url.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    const parameter = pathParameters[name]
    if (!parameter) throw new Error(`the path parameter ${name} of ${url} is not described`)
    return { name, in: 'path', required: true, ...parameter, schema: refer(parameter.schema) }
  })
  const { properties = {}, required = [] } = (query ?? {}) as Schema
  const inQuery = Object.entries(properties).map(([name, schema]) => {
    const { description, ...said } = schema
    return {
      name,
      in: 'query',
      ...(description !== undefined && { description }),
      ...(required.includes(name) && { required: true }),
      schema: refer(said),
    }
  })
  const inHeader = Object.entries(headers).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  }))
  return [...inPath, ...inQuery, ...inHeader]
}

/** Allowed callers in words (contract §2). */
function callers({ open, users, anyUser, session, lasting, agent, enrollment }: Allow): string {
  if (open) return 'Open to all: requires no token.'
  const who: string[] = []
  if (anyUser) who.push('users of every role')
  if (session && users === undefined) who.push('users of every role, with a session')
  if (users !== undefined) {
    const right = rights.find((each) => may('VIEWER', users, [each]))
    const or = may('VIEWER', users) || right === undefined ? '' : ` or the right ${right}`
    const token = lasting ? ', with a session or a token made with `admin: true`' : ''
    const by = session ? ', with a session' : token
    who.push(`users with the role ${roles.filter((role) => may(role, users)).join(', ')}${or}${by}`)
  }
  if (agent) who.push('the agent itself')
  if (enrollment) who.push('an enrollment token')
  return `For ${who.join('; ')}.`
}

function requestBody(body: Schema, { refer }: Components): object {
  return {
    required: (body.required ?? []).length > 0,
    content: { 'application/json': { schema: refer(body), example: exampleOf(body) } },
  }
}

function success(declared: Operation, components: Components): Record<string, object> {
  const { answer, created, unchanging, media = {} } = declared
  const code = created ? 201 : 200
  const message = created ? 'Created' : 'OK'
  const content: Record<string, object> = {}
  if (answer) {
    const schema = {
      type: 'object',
      required: ['code', 'message', 'data'],
      properties: {
        code: { type: 'integer', const: code },
        message: { type: 'string' },
        data: components.refer(answer),
      },
    }
    content['application/json'] = { schema, example: { code, message, data: exampleOf(answer) } }
  }
  for (const [type, says] of Object.entries(media)) {
    const { holds, example, events }: Partial<Media> = typeof says === 'string' ? { holds: says } : says
    content[type] = {
      schema: {
        type: type === 'application/json' ? 'object' : 'string',
        description: holds,
        // OpenAPI 3.1 cannot describe items of a stream; this at least gives clients named types for the events.
        ...(events && { contentMediaType: type, contentSchema: eventsSchema(events, components) }),
      },
      ...(example !== undefined && { example }),
    }
  }
  return {
    [code]: { description: message, ...(unchanging && { headers: entityTag }), content },
    ...(unchanging && {
      304: { description: 'Not modified: If-None-Match has the current ETag', headers: entityTag },
    }),
  }
}

function eventsSchema(events: Readonly<Record<string, Schema>>, { refer }: Components): object {
  const properties = Object.entries(events).map(([name, data]) => [name, refer(data)] as const)
  return {
    type: 'object',
    description: 'Name and `data` of one event.',
    properties: Object.fromEntries(properties),
  }
}

/** Converts `/api/hosts/:id` to OpenAPI's syntax. */
const templated = (url: string): string => url.replaceAll(/:(\w+)/g, '{$1}')
