import type { SelectorHost } from '../../core/selector/directory.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { foldIds, unfoldIds } from '../../core/tasks/id-set.ts'
import { dueTogether, type EventData } from '../../core/webhooks/webhook.ts'
import type { Clock } from '../../disk/clock.ts'
import type { Fleet } from '../hosts/fleet.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Reach, Webhook, WebhookEvents } from './events.ts'

interface Parts {
  readonly store: Store
  readonly webhookEvents: WebhookEvents
  readonly fleet: Pick<Fleet, 'directory' | 'isReturning'>
  readonly clock: Clock
  readonly hostGrace: { readonly offline: number; readonly online: number }
}

/** Since when hosts differ from the last report to a webhook, in monotonic milliseconds. */
interface Since {
  readonly offline: Map<number, number>
  readonly online: Map<number, number>
}

const hostEvents = ['host.offline', 'host.online'] as const

const wantsHosts = ({ enabled, events }: Webhook) =>
  enabled && hostEvents.some((event) => events.includes(event))

/** Syncs `since` with `ids`, keeping the times of known ones. */
function follow(since: Map<number, number>, ids: ReadonlySet<number>, now: number): void {
  for (const id of since.keys()) if (!ids.has(id)) since.delete(id)
  for (const id of ids) if (!since.has(id)) since.set(id, now)
}

/** A missing link counts as offline, unless servers were the reason and agents may be reconnecting. */
const isAway = ({ status, noLink }: SelectorHost, isReturning: boolean) =>
  status === 'OFFLINE' || (noLink && !isReturning)
const isBack = ({ status, noLink }: SelectorHost) => status !== 'OFFLINE' && !noLink

/** Omits hosts that never had an agent. */
async function withAgent(store: Store, ids: readonly number[]): Promise<number[]> {
  if (ids.length === 0) return []
  const records = await store.getMany('hosts', ids)
  return ids.filter((_, at) => (records[at]?.agent ?? null) !== null)
}

/** Hosts that are offline now, folded: no news for a webhook that was just created or changed. */
export async function offlineNow({ store, fleet }: Pick<Parts, 'store' | 'fleet'>): Promise<string> {
  const { hosts } = await fleet.directory()
  const away = hosts.filter((host) => isAway(host, fleet.isReturning)).map(({ id }) => id)
  return foldIds(await withAgent(store, away))
}

/** Reports hosts that go offline or come back, those together as one event (contract §16). */
export function createHostWatch({ store, webhookEvents, fleet, clock, hostGrace }: Parts) {
  const sinces = new Map<number, Since>()

  async function compare(webhook: Webhook, hosts: readonly SelectorHost[], reach: Reach): Promise<void> {
    const names = reach.get(webhook.id) ?? null
    const seen = names === null ? hosts : hosts.filter(({ id }) => names.has(id))
    const since = sinces.get(webhook.id) ?? { offline: new Map(), online: new Map() }
    sinces.set(webhook.id, since)
    const now = clock.monotonic()
    const reported = new Set(unfoldIds(webhook.offline))
    const { isReturning } = fleet
    const away = seen.flatMap((host) =>
      isAway(host, isReturning) && !reported.has(host.id) ? [host.id] : [],
    )
    const back = seen.flatMap((host) => (isBack(host) && reported.has(host.id) ? [host.id] : []))
    follow(since.offline, new Set(await withAgent(store, away)), now)
    follow(since.online, new Set(back), now)
    const changes = {
      gone: dueTogether(since.offline, now, hostGrace.offline),
      back: dueTogether(since.online, now, hostGrace.online),
    }
    if (changes.gone.length > 0 || changes.back.length > 0) await report(webhook, changes, hosts)
  }

  /** Stores the reported offline hosts together with the events. */
  async function report(
    { id }: Webhook,
    { gone, back }: { gone: readonly number[]; back: readonly number[] },
    hosts: readonly SelectorHost[],
  ): Promise<void> {
    const nameOf = new Map(hosts.map((host) => [host.id, host.hostname]))
    const dataOf = (ids: readonly number[]): EventData => ({
      nodes: foldNodeset(ids.flatMap((each) => nameOf.get(each) ?? [])),
      count: ids.length,
    })
    const leaving = new Set(back)
    // A removed host never comes back.
    const stays = (each: number) => nameOf.has(each) && !leaving.has(each)
    await store.transact(async (tx) => {
      const current = await tx.get('webhooks', id)
      if (!current) return
      const before = unfoldIds(current.offline).filter(stays)
      tx.put('webhooks', { ...current, offline: foldIds([...before, ...gone]) })
      if (gone.length > 0) webhookEvents.writeTo(tx, current, 'host.offline', dataOf(gone))
      if (back.length > 0) webhookEvents.writeTo(tx, current, 'host.online', dataOf(back))
    })
    await webhookEvents.known()
  }

  return {
    /** Checks all hosts once, for those of these webhooks that want host events. */
    async poll(webhooks: readonly Webhook[]): Promise<void> {
      const wanting = webhooks.filter(wantsHosts)
      for (const id of sinces.keys()) if (!wanting.some((webhook) => webhook.id === id)) sinces.delete(id)
      if (wanting.length === 0) return
      const { hosts } = await fleet.directory()
      const reach = await webhookEvents.reach()
      for (const webhook of wanting) await compare(webhook, hosts, reach)
    },
  }
}
