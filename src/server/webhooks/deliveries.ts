import { setMaxListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { isDue } from '../../core/webhooks/webhook.ts'
import type { Age } from '../../disk/agreed-clock.ts'
import { type Clock, repeat } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Fleet } from '../hosts/fleet.ts'
import { ascendFrom } from '../storage/ids.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { RecordEvent } from '../storage/ports/audit-log.ts'
import type { Member, Ownership } from '../storage/ports/cluster.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Webhook, WebhookEvents } from './events.ts'
import { createHostWatch } from './hosts.ts'
import type { Outcome } from './post.ts'
import { clearQueue, eventIdOf, type QueueParts, webhookIdOf, workOff } from './queue.ts'
import type { Sender } from './sender.ts'

/** Milliseconds between checks for due deliveries. */
const pollInterval = 500
/** Milliseconds between claims of webhooks that no live server owns. */
const claimEvery = 2_000
/** Milliseconds between checks of every queue, in case an event was missed. */
const fullPollInterval = 60_000
/** Milliseconds before a failed check is retried, or a queue with held deliveries is checked again. */
const retryAfter = 5_000
/** Longest interval between checks of offline hosts, in milliseconds. */
const hostsEvery = 5_000

/** Milliseconds between attempts, over all webhooks, so that a burst of events does not block tasks. */
const tryEvery = 5

interface Parts {
  readonly store: Store
  readonly webhookEvents: WebhookEvents
  readonly sender: Sender
  readonly fleet: Pick<Fleet, 'directory' | 'isReturning'>
  readonly ownership: Ownership
  readonly member: Member
  readonly holdsLease: () => boolean
  /**
   * Start of the run that detected an open restore, or null. Older deliveries are held, because they may have
   * been sent since the backup (contract §16).
   */
  readonly openSince: () => Promise<string | null>
  readonly facts: LocalFacts
  readonly record: RecordEvent
  readonly agreed: { age(): Age }
  readonly clock: Clock
  readonly log: Log
  /** Milliseconds that a host must be offline, or back, before that is reported. */
  readonly hostGrace: { readonly offline: number; readonly online: number }
}

export interface Deliveries {
  start(): void
  /** Sends a test event; null if the server is stopping. */
  test(webhook: Webhook): Promise<Outcome | null>
  waiting(): number
  /** Stops sending; interrupted deliveries are resent by the next owner of the webhook. */
  stop(): Promise<void>
}

interface Owned {
  /** The queue may have changed since the last check. */
  isStale: boolean
  /** Milliseconds since 1970; null to wait for an event. */
  wakeAt: number | null
  waiting: number
  running: Promise<void> | null
}

const ownedAs = (webhookId: number) => `webhook/${webhookId}`

export function createDeliveries(parts: Parts): Deliveries {
  const { store, webhookEvents, sender, ownership, member, holdsLease, facts, clock, log } = parts
  const owned = new Map<number, Owned>()
  const stopping = new AbortController()
  // Each attempt adds a listener.
  setMaxListeners(0, stopping.signal)
  const pace = createPace()
  const hosts = createHostWatch(parts)
  const webhookOf = (id: number) => webhookEvents.all().find((webhook) => webhook.id === id)

  const queue: Omit<QueueParts, 'mayGoOn' | 'from'> = {
    store,
    clock,
    agreed: parts.agreed,
    async send(webhook, delivery) {
      await pace()
      return stopping.signal.aborted ? null : sender.send(webhook, delivery, stopping.signal)
    },
    counted: (outcome, count) => facts.publish('webhook', { outcome, count }),
    gaveUp({ id, name }, oldest, count, message) {
      const object = { type: 'webhook', id, name }
      return parts.record('webhook.giveUp', object, 'FAILED', { message, count, first: eventIdOf(oldest) })
    },
  }

  async function work(webhookId: number, state: Owned): Promise<void> {
    // A webhook that was lost and reclaimed has a new state: work on the old one ends.
    const mayGoOn = () => !stopping.signal.aborted && owned.get(webhookId) === state && holdsLease()
    try {
      while (state.isStale && mayGoOn()) {
        state.isStale = false
        const from = await parts.openSince()
        const left = await workOff({ ...queue, mayGoOn, from }, webhookId, () => webhookOf(webhookId))
        state.waiting = left.waiting
        state.wakeAt = left.wakeAt ?? (from !== null && left.waiting > 0 ? clock.now() + retryAfter : null)
      }
    } catch (error) {
      if (!stopping.signal.aborted)
        log.warn({ err: error, webhookId }, 'processing the queue of a webhook failed; retrying')
      state.wakeAt = clock.now() + retryAfter
    }
  }

  function wake(webhookId: number, state: Owned): void {
    if (state.running || stopping.signal.aborted) return
    state.isStale = true
    state.wakeAt = null
    state.running = work(webhookId, state).finally(() => {
      state.running = null
    })
  }

  function pollDue(): void {
    for (const [webhookId, state] of owned)
      if (state.isStale || (state.wakeAt !== null && isDue(state.wakeAt, clock.now()))) wake(webhookId, state)
  }

  /** Makes new ids sort after pending ones, even if the clock was ahead. */
  async function ascend(webhookId: number): Promise<void> {
    const where = { equals: { webhookId } }
    const [newest] = (await store.query('deliveries', { where, order: 'desc', limit: 1 })).items
    if (newest) ascendFrom(eventIdOf(newest))
  }

  async function claim(): Promise<void> {
    await webhookEvents.known()
    const ids = webhookEvents.all().map(({ id }) => id)
    const mine = ids.length === 0 ? [] : await ownership.claim(member, ids.map(ownedAs))
    for (const id of owned.keys()) {
      if (mine.includes(ownedAs(id))) continue
      owned.delete(id)
      if (ids.includes(id)) continue
      await ownership.release(member, [ownedAs(id)])
      await clearQueue(store, id)
    }
    for (const id of ids) {
      if (!mine.includes(ownedAs(id)) || owned.has(id)) continue
      await ascend(id)
      const state: Owned = { isStale: true, wakeAt: null, waiting: 0, running: null }
      owned.set(id, state)
      wake(id, state)
    }
  }

  /** A webhook (null: any) changed, so pending deliveries may be due. */
  async function markChanged(changed: number | null): Promise<void> {
    await webhookEvents.known().catch(() => undefined)
    for (const [id, state] of owned) if (changed === null || changed === id) state.isStale = true
  }

  const every = (milliseconds: number, work: () => Promise<void>, name: string) =>
    repeat(milliseconds, work, (error) => log.warn({ err: error }, `${name} failed; retrying`))

  let ends: (() => Promise<void> | void)[] = []

  return {
    start() {
      const claims = every(claimEvery, claim, 'claiming webhooks')
      const hostPolls = every(
        Math.min(hostsEvery, parts.hostGrace.offline),
        () => hosts.poll([...owned.keys()].flatMap((id) => webhookOf(id) ?? [])),
        'checking hosts for webhooks',
      )
      const polls = setInterval(pollDue, pollInterval).unref()
      const fullPolls = setInterval(() => {
        for (const state of owned.values()) state.isStale = true
      }, fullPollInterval).unref()
      store.watch('webhooks', (id) => {
        void claims.now()
        void markChanged(id)
      })
      store.watch('deliveries', (id) => {
        for (const webhookId of id === null ? owned.keys() : [webhookIdOf(id)]) {
          const state = owned.get(webhookId)
          if (!state) continue
          state.isStale = true
          // While a retry is pending, the next poll only counts the new one.
          if (state.wakeAt === null) wake(webhookId, state)
        }
      })
      void claims.now()
      ends = [
        () => claims.stop(),
        () => hostPolls.stop(),
        () => clearInterval(polls),
        () => clearInterval(fullPolls),
      ]
    },
    test: (webhook) => sender.test(webhook, stopping.signal),
    waiting: () => [...owned.values()].reduce((sum, { waiting }) => sum + waiting, 0),
    async stop() {
      stopping.abort()
      for (const end of ends) await end()
      for (const { running } of owned.values()) await running
    },
  }
}

/** Returns a function that resolves when the next attempt may start. */
function createPace(): () => Promise<void> {
  let next = 0
  return async () => {
    const now = performance.now()
    const mine = Math.max(now, next)
    next = mine + tryEvery
    if (mine > now) await delay(mine - now)
  }
}
