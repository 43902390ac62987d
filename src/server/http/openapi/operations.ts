import { may, rights, roles } from '../../../core/permissions.ts'
import { Id, OpaqueId } from '../../../core/protocol/http/common.ts'
import { Type } from '../../../core/protocol/http/schema.ts'
import type { Allow } from '../auth.ts'
import type { Media, Operation } from '../operation.ts'
import { type Components, exampleOf, type Schema } from './components.ts'
import { errorCodes, errorReferences, type ResponseErrorCode } from './errors.ts'

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

export function describeOperation(
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
export const templated = (url: string): string => url.replaceAll(/:(\w+)/g, '{$1}')
