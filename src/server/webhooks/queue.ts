import { isDue, isTimeOver, nextTry } from '../../core/webhooks/webhook.ts'
import type { Age } from '../../disk/agreed-clock.ts'
import { type Clock, isoTime } from '../../disk/clock.ts'
import type { Store } from '../storage/ports/store.ts'
import type { DeliveryRecord } from '../storage/records/webhook.ts'
import type { Webhook } from './events.ts'
import type { Outcome } from './post.ts'

/** Pending deliveries per webhook; above, the oldest are given up (contract §16). */
const mostWaiting = 10_000
/** Ended deliveries per webhook kept for inspection. */
const mostEnded = 100
/** Deliveries read or written per batch. */
const atOnce = 100

export type Delivery = Readonly<DeliveryRecord>

export interface QueueParts {
  readonly store: Store
  readonly clock: Clock
  /** Age of an event by the agreed clock. */
  readonly agreed: { age(): Age }
  /** Sends a delivery; null if the server is stopping. */
  send(webhook: Webhook, delivery: Delivery): Promise<Outcome | null>
  /** ISO 8601: older deliveries are held. Null if none are. */
  readonly from: string | null
  /** Whether this server may still send for the webhook. */
  mayGoOn(webhookId: number): boolean
  /** Called for each attempt and for deliveries given up. */
  counted(outcome: 'delivered' | 'failed' | 'gave_up', count: number): void
  gaveUp(webhook: Webhook, oldest: Delivery, count: number, why: string): Promise<void>
}

/** Pending deliveries after a pass, and when to continue; null: when an event comes. */
export interface Left {
  readonly waiting: number
  readonly wakeAt: number | null
}

/** The event id in `webhookId/eventId`, as the receiver sees it. */
export const eventIdOf = ({ id }: Pick<Delivery, 'id'>): string => id.slice(id.indexOf('/') + 1)

export const webhookIdOf = (id: string): number => Number(id.slice(0, id.indexOf('/')))

export const queueOf = (webhookId: number, status: Delivery['status']): string => `${webhookId}/${status}`

/** Sends pending deliveries of a webhook in order, until the queue is empty or must wait. */
export async function workOff(
  parts: QueueParts,
  webhookId: number,
  current: () => Webhook | undefined,
): Promise<Left> {
  const { store, agreed, clock, from } = parts
  for (;;) {
    const where = { equals: { queue: queueOf(webhookId, 'WAITING') } }
    // Held deliveries come first and may fill the whole queue.
    const limit = from === null ? atOnce : mostWaiting + atOnce
    const { items: all, total } = await store.query('deliveries', { where, limit })
    const items = all.filter(({ at }) => from === null || at >= from).slice(0, atOnce)
    const webhook = current()
    if (!webhook || !parts.mayGoOn(webhookId)) return { waiting: total, wakeAt: null }
    const age = agreed.age()
    const late = items.filter(({ at }) => isTimeOver(age(Date.parse(at))))
    const over = all.slice(0, Math.min(atOnce, Math.max(0, total - mostWaiting)))
    if (over.length > 0 || late.length > 0) {
      const why =
        over.length > 0 ? `more than ${mostWaiting} deliveries are pending` : 'the retry period is over'
      await giveUp(parts, webhook, over.length > 0 ? over : late, why)
      continue
    }
    if (!webhook.enabled || items.length === 0) return { waiting: total, wakeAt: null }
    let waiting = total
    for (const delivery of items) {
      const dueAt = delivery.nextAt === null ? null : Date.parse(delivery.nextAt)
      if (dueAt !== null && !isDue(dueAt, clock.now())) return { waiting, wakeAt: dueAt }
      const now = current()
      if (!now?.enabled || !parts.mayGoOn(webhookId)) return { waiting, wakeAt: null }
      const outcome = await parts.send(now, delivery)
      if (outcome === null) return { waiting, wakeAt: null }
      const next = afterTry(delivery, outcome, clock.now(), agreed.age())
      await write(store, [next])
      parts.counted(outcome.error === null ? 'delivered' : 'failed', 1)
      if (next.status === 'GAVE_UP') await reportGivenUp(parts, now, [next], 'the retry period is over')
      else if (next.nextAt !== null) return { waiting, wakeAt: Date.parse(next.nextAt) }
      waiting--
    }
    await prune(store, webhookId)
  }
}

/** State of a delivery after an attempt at `now`. */
function afterTry(delivery: Delivery, { status, error }: Outcome, now: number, age: Age): DeliveryRecord {
  const tries = delivery.tries + 1
  const tried = { ...delivery, tries, lastStatus: status, lastError: error }
  const end = { nextAt: null, endedAt: isoTime(now) }
  if (error === null) return { ...tried, ...end, status: 'DELIVERED' }
  const pause = nextTry(tries, age(Date.parse(delivery.at)))
  return pause === null ? { ...tried, ...end, status: 'GAVE_UP' } : { ...tried, nextAt: isoTime(now + pause) }
}

/** Writes deliveries still pending: others went with their webhook, or another server was faster. */
async function write(store: Store, next: readonly DeliveryRecord[]): Promise<void> {
  await store.transact(async (tx) => {
    const now = await tx.getMany(
      'deliveries',
      next.map(({ id }) => id),
    )
    for (const [at, record] of next.entries()) if (now[at]?.status === 'WAITING') tx.put('deliveries', record)
  })
}

async function giveUp(
  parts: QueueParts,
  webhook: Webhook,
  deliveries: readonly Delivery[],
  why: string,
): Promise<void> {
  const endedAt = isoTime(parts.clock.now())
  await write(
    parts.store,
    deliveries.map((each) => ({ ...each, status: 'GAVE_UP', nextAt: null, endedAt })),
  )
  await reportGivenUp(parts, webhook, deliveries, why)
  await prune(parts.store, webhook.id)
}

async function reportGivenUp(
  parts: QueueParts,
  webhook: Webhook,
  deliveries: readonly Delivery[],
  why: string,
): Promise<void> {
  const [oldest] = deliveries
  if (!oldest) return
  parts.counted('gave_up', deliveries.length)
  await parts.gaveUp(webhook, oldest, deliveries.length, why)
}

/** Removes all but the newest ended deliveries. */
async function prune(store: Store, webhookId: number): Promise<void> {
  for (const status of ['DELIVERED', 'GAVE_UP'] as const) {
    const where = { equals: { queue: queueOf(webhookId, status) } }
    const { items } = await store.query('deliveries', {
      where,
      order: 'desc',
      offset: mostEnded,
      limit: 10 * atOnce,
    })
    if (items.length > 0) await removeDeliveries(store, items)
  }
}

export async function removeDeliveries(store: Store, deliveries: readonly Delivery[]): Promise<void> {
  await store.transact((tx) => {
    for (const { id } of deliveries) tx.remove('deliveries', id)
  })
}

export async function clearQueue(store: Store, webhookId: number): Promise<void> {
  for (;;) {
    const { items } = await store.query('deliveries', { where: { equals: { webhookId } }, limit: 5 * atOnce })
    if (items.length === 0) return
    await removeDeliveries(store, items)
  }
}
