import * as agent from '../../../core/protocol/http/agent.ts'
import * as audit from '../../../core/protocol/http/audit.ts'
import * as clusters from '../../../core/protocol/http/clusters.ts'
import * as common from '../../../core/protocol/http/common.ts'
import * as enrollments from '../../../core/protocol/http/enrollments.ts'
import * as events from '../../../core/protocol/http/events.ts'
import * as files from '../../../core/protocol/http/files.ts'
import * as hostAgent from '../../../core/protocol/http/host-agent.ts'
import * as hosts from '../../../core/protocol/http/hosts.ts'
import * as logs from '../../../core/protocol/http/logs.ts'
import * as schedules from '../../../core/protocol/http/schedules.ts'
import * as scripts from '../../../core/protocol/http/scripts.ts'
import * as server from '../../../core/protocol/http/server.ts'
import * as servers from '../../../core/protocol/http/servers.ts'
import * as sessions from '../../../core/protocol/http/sessions.ts'
import * as tasks from '../../../core/protocol/http/tasks.ts'
import * as terminals from '../../../core/protocol/http/terminals.ts'
import * as tokens from '../../../core/protocol/http/tokens.ts'
import * as totp from '../../../core/protocol/http/totp.ts'
import * as users from '../../../core/protocol/http/users.ts'
import * as webhooks from '../../../core/protocol/http/webhooks.ts'
import { isSchema, type Schema } from './schema.ts'

/** Everything that a body or an answer is made of; a new file of schemas has to stand here. */
const modules: readonly object[] = [
  agent,
  audit,
  clusters,
  common,
  enrollments,
  events,
  files,
  hostAgent,
  hosts,
  logs,
  schedules,
  scripts,
  server,
  servers,
  tasks,
  terminals,
  sessions,
  tokens,
  totp,
  users,
  webhooks,
]

/** Objects, enumerations and alternatives deserve a name in a client; a text with a bound, or null, does not. */
const worthNaming = ({ type, anyOf = [] }: Schema): boolean =>
  type === 'object' || (type === undefined && anyOf.every((one) => one.type !== 'null'))

/**
 * Finds the name under which a schema is exported. By identity; where typebox made a copy (`Type.Optional` does), by
 * what it says.
 */
export function schemaNames(): (schema: Schema) => string | undefined {
  const byIdentity = new Map<Schema, string>()
  const byText = new Map<string, string>()
  for (const [name, value] of modules.flatMap((module) => Object.entries(module))) {
    if (!isSchema(value) || !worthNaming(value)) continue
    byIdentity.set(value, name)
    const text = JSON.stringify(value)
    if (!byText.has(text)) byText.set(text, name)
  }
  return (schema) => {
    if (!worthNaming(schema)) return undefined
    return byIdentity.get(schema) ?? byText.get(JSON.stringify(schema)) ?? pageName(schema, byIdentity)
  }
}

/** `PageOf(Host)` is made where it is used: it is called after what it lists. */
function pageName({ properties }: Schema, names: ReadonlyMap<Schema, string>): string | undefined {
  const item = properties?.['totalElements'] === undefined ? undefined : properties['content']?.items
  const name = item === undefined ? undefined : names.get(item)
  return name === undefined ? undefined : `${name}Page`
}
