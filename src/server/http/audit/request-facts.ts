import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuditActor, AuditDetail, AuditObject } from '../../../core/audit.ts'
import { rights } from '../../../core/permissions.ts'
import { webhookEvents, webhookFilters } from '../../../core/webhooks/webhook.ts'
import { sha256 } from '../../../disk/digest.ts'
import { fetchedId } from '../../files/files.ts'
import { fileFacts, gateFacts, lineFacts, taskFacts } from '../../storage/audit-entry.ts'
import type { Store } from '../../storage/ports/store.ts'
import { pathNouns } from '../auth.ts'
import type { Operation } from '../operation.ts'

type Fields = Record<string, unknown>

export interface Observed {
  /** Name of the record in the path, read before a deletion. */
  name: string | null
  envelope: { message?: unknown; data?: unknown } | null
  /** Repeats an earlier call, so it started nothing. */
  replayed: boolean
}

/** Audited fields of a successful answer, including defaults; never tokens, passwords or texts. */
const granted = [
  'role',
  'admin',
  'enabled',
  'delivered',
  'maxUses',
  'expiresAt',
  'hostId',
  'version',
  'sha256',
] as const

/** Body fields whose values are audited; of other fields only the name. */
const auditedFields = [
  'role',
  'admin',
  'enabled',
  'format',
  'maxUses',
  'expiresInHours',
  'expiresInDays',
  'hostId',
  'clusterId',
  'scriptId',
  'agentId',
  'hostname',
  'hostKey',
  'runAs',
  'shell',
  'watch',
  'strategy',
  'cron',
  'everySeconds',
  'at',
  'timezone',
  'overlap',
  'missed',
  'jitterSeconds',
  'limitRate',
  'sudo',
  'forgetCredentials',
] as const
const maxHosts = 20

export const asFields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {}
const idOrNull = (value: unknown): number | string | null =>
  typeof value === 'number' || typeof value === 'string' ? value : null
const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** Name of the record in the path, or null; for a terminal, the name of its host. */
export async function nameInPath(request: FastifyRequest, store: Store): Promise<string | null> {
  const { exists, operation } = request.routeOptions.config
  const { id, sessionId } = asFields(request.params)
  if (exists === 'terminals') return (await store.get(exists, String(sessionId)))?.hostname ?? null
  if (operation?.audit?.object === 'terminal')
    return (await store.get('hosts', Number(asFields(request.body)['hostId'])))?.hostname ?? null
  if (exists === undefined || exists === 'tasks' || exists === 'sessions' || id === undefined) return null
  const record = asFields(await store.get(exists, Number(id)))
  return textOrNull(record['name'] ?? record['hostname'] ?? record['username'])
}

/** The user who just logged in, because the login itself has no token. */
export function loggedIn({ envelope }: Pick<Observed, 'envelope'>): AuditActor | null {
  const { token, user } = asFields(envelope?.data)
  const { id, username } = asFields(user)
  if (typeof token !== 'string' || typeof id !== 'number') return null
  return { type: 'user', id, name: textOrNull(username), tokenId: null }
}

export function objectOf(
  request: FastifyRequest,
  { object: type }: NonNullable<Operation['audit']>,
  { name, envelope }: Observed,
): AuditObject {
  const { config } = request.routeOptions
  const params = asFields(request.params)
  const body = asFields(request.body)
  const data = asFields(envelope?.data)
  const { caller } = request
  if (type === 'task')
    return {
      type,
      id: idOrNull(data['taskId'] ?? params['taskId']),
      name: textOrNull(asFields(body['script'])['name']),
    }
  if (type === 'file')
    return { type, id: idOrNull(data['fileId'] ?? params['fileId']), name: textOrNull(data['name']) }
  if (type === 'terminal') return { type, id: idOrNull(data['sessionId'] ?? params['sessionId']), name }
  if (type === 'agent') return { type, id: idOrNull(body['agentId']), name: textOrNull(body['hostname']) }
  const inPath = config.exists !== undefined && singularOf(config.exists) === type
  if (inPath) return { type, id: Number(params['id']), name: name ?? textOrNull(body['name']) }
  const user = asFields(data['user'])
  if (type === 'user' && config.allow?.open)
    return { type, id: idOrNull(user['id']), name: textOrNull(body['username']) }
  const own = config.allow?.anyUser ?? config.allow?.session
  if (type === 'user' && own && caller?.type === 'user') return { type, id: caller.id, name: caller.username }
  const named = [data, body].flatMap((each) => [each['name'], each['hostname'], each['username']])
  return { type, id: idOrNull(data['id']), name: textOrNull(named.find((each) => textOrNull(each) !== null)) }
}

function singularOf(noun: keyof typeof pathNouns): string {
  return noun === 'enrollments' ? 'enrollment' : pathNouns[noun]
}

/** Details of a call: names of changed fields; for an execution what runs, where and as whom. */
export async function detailOf(
  request: FastifyRequest,
  reply: FastifyReply,
  { envelope, replayed }: Observed,
  store: Store,
): Promise<AuditDetail> {
  const { statusCode: status } = reply
  const detail: AuditDetail = { requestId: request.id, status }
  if (status >= 300) detail['message'] = textOrNull(envelope?.message) ?? ''
  const { operation } = request.routeOptions.config
  if (!operation?.audit) {
    const route = request.routeOptions.url ?? 'unknown'
    return { ...detail, method: request.method, route }
  }
  const body = asFields(request.body)
  const data = asFields(envelope?.data)
  const { hostId } = asFields(request.params)
  if (typeof hostId === 'string') Object.assign(detail, { hostId, ...(await fetchedFacts(request, store)) })
  Object.assign(detail, valuesOf(body, auditedFields), status < 300 ? valuesOf(data, granted) : {})
  const { command, rights: given } = body
  if (Array.isArray(given)) detail['rights'] = rights.filter((right) => given.includes(right))
  if (typeof command === 'string')
    Object.assign(detail, lineFacts('command', command), {
      commandSha256: sha256(command),
      commandLength: command.length,
    })
  if (operation.audit.object === 'script' && typeof body['content'] === 'string')
    Object.assign(detail, lineFacts('firstLine', body['content']))
  if (replayed) detail['replayed'] = true
  if (request.method === 'PATCH') detail['changed'] = Object.keys(body)
  if (asFields(request.query)['force'] === true) detail['force'] = true
  if (operation.audit.object === 'webhook') Object.assign(detail, webhookFacts(body))
  if (operation.audit.object === 'file') Object.assign(detail, valuesOf(data, ['size', 'isSecret']))
  // An installation concerns a host and a task; a schedule includes its future tasks.
  return ['task', 'schedule'].includes(operation.audit.object) || typeof data['taskId'] === 'string'
    ? { ...detail, ...(await execution(request, data, store)) }
    : detail
}

function valuesOf(fields: Fields, names: readonly string[]): AuditDetail {
  const found: AuditDetail = {}
  for (const name of names) {
    const value = fields[name]
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      found[name] = value
  }
  return found
}

async function execution(request: FastifyRequest, data: Fields, store: Store): Promise<AuditDetail> {
  const body = asFields(request.body)
  const params = asFields(request.params)
  const found: AuditDetail = { ...targetOf(body), ...(await orderOf(body, store)) }
  const { taskId } = data
  if (typeof taskId !== 'string') return found
  if (typeof params['taskId'] === 'string' && params['taskId'] !== taskId) found['retryOf'] = params['taskId']
  const task = await store.get('tasks', taskId)
  if (!task) return found
  return { ...found, ...taskFacts(task), ...(task.install && valuesOf({ ...task.install }, auditedFields)) }
}

/** Script or copy that a body orders, also for schedules and refused calls. */
async function orderOf(body: Fields, store: Store): Promise<AuditDetail> {
  const found: AuditDetail = {}
  const textOf = (value: unknown) => textOrNull(asFields(asFields(value)['script'])['content'])
  const content = textOf(body)
  if (content !== null) Object.assign(found, lineFacts('firstLine', content), { sha256: sha256(content) })
  const { scriptId: runs } = body
  const script = typeof runs === 'number' ? await store.get('scripts', runs) : undefined
  if (script) found['scriptName'] = script.name
  for (const name of ['verify', 'rollback'] as const) {
    const gate = body[name]
    const { scriptId } = asFields(gate)
    const stored = typeof scriptId === 'number' ? scriptId : null
    Object.assign(found, gateFacts(name, { scriptId: stored, content: textOf(gate) }))
  }
  const { copy, stdin } = body
  const { fileId } = asFields(copy ?? stdin)
  const file = typeof fileId === 'string' ? await store.get('files', fileId) : undefined
  if (file) Object.assign(found, fileFacts(file))
  return {
    ...found,
    ...valuesOf(asFields(copy), ['path', 'kind', 'mode', 'owner', 'group', 'backup', 'check']),
  }
}

async function fetchedFacts(request: FastifyRequest, store: Store): Promise<AuditDetail> {
  const { taskId, hostId } = asFields(request.params)
  if (typeof taskId !== 'string') return {}
  const file = await store.get('files', fetchedId(taskId, Number(hostId)))
  if (!file?.isComplete) return {}
  const { fetch } = (await store.get('tasks', taskId)) ?? {}
  return { ...(fetch && { path: fetch.path }), ...fileFacts(file) }
}

/** Events, hosts and server of a webhook; the rest of its URL may be secret. */
function webhookFacts(fields: Fields): AuditDetail {
  const { events, selector, url } = fields
  return {
    ...valuesOf(fields, webhookFilters),
    ...(Array.isArray(events) && { events: webhookEvents.filter((event) => events.includes(event)) }),
    ...(typeof selector === 'string' && { selector }),
    ...(typeof url === 'string' && URL.canParse(url) && { origin: new URL(url).origin }),
  }
}

function targetOf(body: Fields): AuditDetail {
  const target = asFields(body['target'])
  const { hostIds = body['hostIds'], hosts, clusters, tags, exclude } = target
  const found = valuesOf(target, ['selector', 'clusterId', 'all'])
  // A refused body may contain anything here, even values that String() rejects.
  for (const [name, values] of Object.entries({ hosts, clusters, tags, exclude, hostIds }))
    if (Array.isArray(values))
      found[name] = values
        .slice(0, maxHosts)
        .filter((value) => typeof value === (name === 'hostIds' ? 'number' : 'string'))
        .map(String)
  return found
}
