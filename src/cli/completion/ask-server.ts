import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Terminal, TerminalQuery } from '../../core/protocol/http/terminals.ts'
import { compareNatural } from '../../core/selector/natural-order.ts'
import type { ChosenServer } from '../contexts/contexts.ts'
import { standingOf } from '../hosts/standing.ts'
import { counted, showBytes } from '../text/amounts.ts'
import { withOwnMark } from '../text/screen.ts'
import { showTime } from '../text/time.ts'
import { nextOf, timingOf } from '../views/schedules.ts'
import type { Listed, Named } from './names-cache.ts'

type Found = Partial<Record<Listed, readonly Named[]>>

/** Limit for tasks, sessions and uploads, because there may be any number. */
const newest = 100

/** Groups of hosts, as in selectors: `tag:role:web`, `os:linux`, `arch:x64`. */
export function groupsOf(hosts: readonly Host[]): Named[] {
  const counts = new Map<string, number>()
  for (const { tags, systemInfo } of hosts) {
    const names = Object.entries(tags).map(([key, value]) => `tag:${key}:${value}`)
    if (systemInfo !== null) names.push(`os:${systemInfo.os}`, `arch:${systemInfo.arch}`)
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts]
    .map(([name, count]) => ({ name, about: counted(count, 'host') }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function hostsAndGroups({ hosts }: Client): Promise<Found> {
  const { content } = await allPages((query) => hosts.list(query), {})
  const names = content.map((host) => ({ name: host.hostname, about: standingOf(host) }))
  return { hosts: names.sort((a, b) => compareNatural(a.name, b.name)), groups: groupsOf(content) }
}

const sessionNamed = ({ sessionId, hostname, user, startedAt }: Terminal): Named => ({
  name: sessionId,
  about: `${hostname} by ${user}, ${showTime(startedAt, false)}`,
})

async function allOf<T>(
  service: { list(query: object): Promise<Page<T>> },
  named: (each: T) => Named,
): Promise<Named[]> {
  return (await allPages((query) => service.list(query), {})).content.map(named)
}

const sessions = async ({ terminals }: Client, query: TerminalQuery) =>
  (await terminals.list({ ...query, size: newest })).content.map(sessionNamed)

const lists: Readonly<
  Record<Exclude<Listed, 'hosts' | 'groups'>, (client: Client) => Promise<readonly Named[]>>
> = {
  clusters: ({ clusters }) =>
    allOf(clusters, ({ name, hostCount }) => ({ name, about: counted(hostCount, 'host') })),
  scripts: ({ scripts }) =>
    allOf(scripts, ({ name, type, description }) => ({ name, about: description || type.toLowerCase() })),
  schedules: ({ schedules }) =>
    allOf(schedules, (each) => ({
      name: each.name,
      about: `${timingOf(each, false)}, ${nextOf(each, false)}`,
    })),
  uploads: async ({ files }) =>
    (await files.list({ size: newest })).content.map(({ fileId, name, user, offset }) => ({
      name: fileId,
      about: `${name ?? 'without a name'} by ${user ?? 'a removed user'}, ${showBytes(offset)}`,
    })),
  tasks: async ({ tasks }) =>
    (await tasks.list({ size: newest })).content.map(
      ({ taskId, status, scriptName, firstLine, hostCount, createdAt }) => ({
        name: taskId,
        about: `${status}, ${scriptName ?? withOwnMark(firstLine ?? 'command')}, ${counted(hostCount, 'host')}, ${showTime(createdAt, false)}`,
      }),
    ),
  users: ({ users }) => allOf(users, ({ username, role }) => ({ name: username, about: role })),
  tokens: ({ tokens }) => allOf(tokens, ({ id, name, role }) => ({ name: name ?? String(id), about: role })),
  enrollments: ({ enrollments }) =>
    allOf(enrollments, ({ id, uses, maxUses, name }) => ({
      name: name ?? String(id),
      about: `${uses} of ${maxUses} uses`,
    })),
  webhooks: ({ webhooks }) => allOf(webhooks, ({ name, events }) => ({ name, about: events.join(', ') })),
  recordings: (client) => sessions(client, { recorded: true }),
  sessions: (client) => sessions(client, { status: 'OPEN' }),
}

/** Fetches one list of names; hosts and groups always together. Errors: the client's. */
export async function askServer(listed: Listed, server: ChosenServer): Promise<Found> {
  const { openClient } = await import('../../client/client.ts')
  const client = await openClient(server)
  if (listed === 'hosts' || listed === 'groups') return hostsAndGroups(client)
  return { [listed]: await lists[listed](client) }
}
