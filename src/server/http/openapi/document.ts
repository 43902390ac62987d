import type { Tag } from '../operation.ts'
import { createComponents } from './components.ts'
import { errorComponent, errorSchemas, type ResponseErrorCode } from './errors.ts'
import { describeOperation, type RoutedOperation, templated } from './operations.ts'

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
