import type { Client } from '../../client/client.ts'
import type { Page } from '../../core/protocol/http/common.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { Terminal } from '../../core/protocol/http/terminals.ts'
import type { ChosenServer } from '../contexts/contexts.ts'
import { counted } from '../text/counted.ts'
import { withOwnMark } from '../text/screen.ts'
import { showTime } from '../text/time.ts'
import type { Listed, Named } from './listed.ts'

const pageSize = 500
/** Pages asked for at once, and at most: 10,000 hosts. */
const atOnce = 4
const mostPages = 20
/** Of tasks and sessions, which are without number, the newest. */
const newest = 100

async function everyOne<T>(list: (query: { page: number; size: number }) => Promise<Page<T>>): Promise<T[]> {
  const first = await list({ page: 0, size: pageSize })
  const pages: T[][] = [first.content]
  const count = Math.min(first.totalPages, mostPages)
  let next = 1
  const take = async () => {
    for (let page = next++; page < count; page = next++)
      pages[page] = (await list({ page, size: pageSize })).content
  }
  await Promise.all(Array.from({ length: atOnce }, take))
  return pages.flat()
}

/** What hosts have in common, as selectors name it: `tag:role:web`, `os:linux`, `arch:x64`. */
export function groupsOf(hosts: readonly Host[]): Named[] {
  const counts = new Map<string, number>()
  const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
  for (const { tags, systemInfo } of hosts) {
    for (const [key, value] of Object.entries(tags)) count(`tag:${key}:${value}`)
    if (systemInfo === null) continue
    count(`os:${systemInfo.os}`)
    count(`arch:${systemInfo.arch}`)
  }
  return [...counts]
    .map(([name, hosts]) => ({ name, about: counted(hosts, 'host') }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function hostsAndGroups(hosts: readonly Host[], compare: (a: string, b: string) => number) {
  const names = hosts.map(({ hostname, status, statusReason }) => ({
    name: hostname,
    about: statusReason === null ? status : `${status}: ${statusReason}`,
  }))
  return { hosts: names.sort((a, b) => compare(a.name, b.name)), groups: groupsOf(hosts) }
}

const sessionNamed = ({ sessionId, hostname, user, startedAt }: Terminal): Named => ({
  name: sessionId,
  about: `${hostname} by ${user}, ${showTime(startedAt, false)}`,
})

/** `deploy VERSION`: what the scripts say of themselves. */
async function paramsOf(scripts: readonly Script[]): Promise<Found> {
  const { parseFrontMatter } = await import('../../core/script/front-matter.ts')
  const params = scripts.flatMap(({ name: script, content }) =>
    parseFrontMatter(content).matter.params.map(({ name, secret, description }) => ({
      secret,
      named: { name: `${script} ${name}`, about: description },
    })),
  )
  const those = (wanted: boolean) =>
    params.filter(({ secret }) => secret === wanted).map(({ named }) => named)
  return { params: those(false), 'secret params': those(true) }
}

type Found = Partial<Record<Listed, readonly Named[]>>

async function listsOf(listed: Listed, client: Client): Promise<Found> {
  switch (listed) {
    case 'hosts':
    case 'groups': {
      const { compareNatural } = await import('../../core/selector/natural-order.ts')
      return hostsAndGroups(await everyOne((query) => client.hosts.list(query)), compareNatural)
    }
    case 'clusters': {
      const clusters = await everyOne((query) => client.clusters.list(query))
      return {
        clusters: clusters.map(({ name, hostCount }) => ({ name, about: counted(hostCount, 'host') })),
      }
    }
    case 'scripts':
    case 'params':
    case 'secret params': {
      const scripts = await everyOne((query) => client.scripts.list(query))
      return {
        scripts: scripts.map(({ name, type, description }) => ({
          name,
          about: description || type.toLowerCase(),
        })),
        ...(await paramsOf(scripts)),
      }
    }
    case 'tasks': {
      const { content } = await client.tasks.list({ size: newest })
      const tasks = content.map(({ taskId, status, scriptName, firstLine, hostCount, createdAt }) => ({
        name: taskId,
        about: `${status}, ${scriptName ?? withOwnMark(firstLine ?? 'command')}, ${counted(hostCount, 'host')}, ${showTime(createdAt, false)}`,
      }))
      return { tasks }
    }
    case 'users': {
      const users = await everyOne((query) => client.users.list(query))
      return { users: users.map(({ username, role }) => ({ name: username, about: role })) }
    }
    case 'tokens': {
      const tokens = await everyOne((query) => client.tokens.list(query))
      return { tokens: tokens.map(({ id, name, role }) => ({ name: name ?? String(id), about: role })) }
    }
    case 'enrollments': {
      const enrollments = await everyOne((query) => client.enrollments.list(query))
      const about = (uses: number, maxUses: number) => `${uses} of ${maxUses} uses`
      return {
        enrollments: enrollments.map(({ id, uses, maxUses, name }) => ({
          name: name ?? String(id),
          about: about(uses, maxUses),
        })),
      }
    }
    case 'recordings':
      return {
        recordings: (await client.terminals.list({ recorded: true, size: newest })).content.map(sessionNamed),
      }
    case 'sessions':
      return {
        sessions: (await client.terminals.list({ status: 'OPEN', size: newest })).content.map(sessionNamed),
      }
  }
}

/** Asks a server for one list of names; hosts and groups come together. Rejects as the client does. */
export async function askServer(listed: Listed, server: ChosenServer): Promise<Found> {
  const { openClient } = await import('../../client/client.ts')
  return listsOf(listed, await openClient(server))
}
