import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import { type Examination, examineHost } from '../../core/checks/examine-host.ts'
import { examineServer } from '../../core/checks/examine-server.ts'
import { RsmError } from '../../core/errors.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { ServerInfo } from '../../core/protocol/http/server.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import type { Services } from '../../core/services.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { certificateEnds, type Endpoint } from '../../net/connect.ts'

/** Running tasks examined, newest first. */
const mostTasks = 20

/** Number of running tasks that wait for each host, by host id. */
async function countWaiting({ tasks }: Pick<Services, 'tasks'>): Promise<Map<number, number>> {
  const { content } = await tasks.list({ status: 'RUNNING', size: mostTasks })
  const waiting = new Map<number, number>()
  for (const { taskId, counts } of content) {
    if ((counts.PENDING ?? 0) === 0) continue
    const task: Task | null = await tasks.get(taskId).catch((error: unknown) => {
      if (error instanceof RsmError && error.code === 'not_found') return null
      throw error
    })
    for (const { hostId, status } of task?.results ?? [])
      if (status === 'PENDING') waiting.set(hostId, (waiting.get(hostId) ?? 0) + 1)
  }
  return waiting
}

export interface ExaminedHost extends Examination {
  readonly host: Host
  readonly hostname: string
}

export interface ExaminedServer extends Examination {
  readonly url: string
  /** Null if the server is too old to report it. */
  readonly version: string | null
}

/** The server's report about itself, and how far the local clock is ahead of it, in milliseconds. */
interface Greeting {
  readonly info: ServerInfo | null
  readonly clockOffset: number | null
}

/** Estimates the clock offset, assuming that the server answered halfway through the request. */
async function greet(client: Client): Promise<Greeting> {
  const asked = Date.now()
  const info = await client.server.info()
  if (info === null) return { info, clockOffset: null }
  return { info, clockOffset: (asked + Date.now()) / 2 - Date.parse(info.serverTime) }
}

type OwnEndpoint = Endpoint & { readonly version: string }

/** Examines the matching hosts, or all; and the server, unless one host matches. Errors: `not_found`. */
export async function examineFleet(
  client: Client,
  endpoint: OwnEndpoint,
  selector?: string,
): Promise<{ server: ExaminedServer | null; hosts: ExaminedHost[] }> {
  const query = selector === undefined ? {} : { selector }
  const greeting = await greet(client)
  const { content } = await allPages((paging) => client.hosts.list(paging), query)
  if (selector !== undefined && content.length === 0)
    throw new RsmError('not_found', unknownName('host', selector, []), { hint: 'rsm hosts list' })
  const hosts = await examineHosts(client, content, greeting)
  const isOne = selector !== undefined && hosts.length === 1
  return { server: isOne ? null : await examineEndpoint(client, endpoint, greeting), hosts }
}

async function examineHosts(
  client: Client,
  hosts: readonly Host[],
  { info, clockOffset }: Greeting,
): Promise<ExaminedHost[]> {
  const isAway = hosts.some(({ agent }) => agent?.connected !== true)
  const waiting = isAway ? await countWaiting(client) : null
  const common = { url: client.api.url, server: info, now: Date.now() - (clockOffset ?? 0) }
  return hosts.map((host) => ({
    host,
    hostname: host.hostname,
    ...examineHost({ ...common, host, waiting: waiting && (waiting.get(host.id) ?? 0) }),
  }))
}

async function examineEndpoint(
  client: Client,
  endpoint: OwnEndpoint,
  { info, clockOffset }: Greeting,
): Promise<ExaminedServer> {
  const { url, version } = endpoint
  const [notReady, status, ends] = await Promise.all([
    client.server.notReady(),
    client.server.status(),
    certificateEnds(endpoint),
  ])
  const examined = examineServer({
    url,
    info,
    version,
    clockOffsetSeconds: clockOffset === null ? null : clockOffset / 1000,
    notReady,
    status,
    certificateEnds: ends,
    now: Date.now(),
  })
  return { url, version: info?.version ?? null, ...examined }
}
