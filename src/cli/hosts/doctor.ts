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

/** Running tasks that are looked into: the newest. */
const mostTasks = 20

/** How many running tasks wait for each host, by its id. */
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
  /** Null where it is too old to say. */
  readonly version: string | null
}

/** What the server said of itself, and how far the clock here is ahead of its own, in milliseconds. */
interface Greeting {
  readonly info: ServerInfo | null
  readonly clockOffset: number | null
}

/** The server's time is taken to be that of half way between question and answer. */
async function greet(client: Client): Promise<Greeting> {
  const asked = Date.now()
  const info = await client.server.info()
  if (info === null) return { info, clockOffset: null }
  return { info, clockOffset: (asked + Date.now()) / 2 - Date.parse(info.serverTime) }
}

/** The way to the server, and the version of the program that asks. */
type OwnEndpoint = Endpoint & { readonly version: string }

/**
 * Examines the hosts that a selector names, all without one, and the way to the server where it is not about one host.
 * Rejects with `not_found` where a selector names none.
 */
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
