import { isDeepStrictEqual } from 'node:util'
import { invalid, RsmError } from '../../core/errors.ts'
import type { Delivery, Webhook, WebhookCreate, WebhookPatch } from '../../core/protocol/http/webhooks.ts'
import { parseSelector } from '../../core/selector/parse.ts'
import { resolveInSlices } from '../../core/selector/resolve.ts'
import type { WebhookService } from '../../core/services.ts'
import { webhookEvents as knownEvents, secretFault } from '../../core/webhooks/webhook.ts'
import { stillAllowed } from '../access/credentials.ts'
import { runInSlices } from '../hosts/fleet.ts'
import { storePage } from '../storage/paging.ts'
import { pick } from '../storage/records/records.ts'
import type { DeliveryRecord, WebhookRecord } from '../storage/records/webhook.ts'
import { filtersToApi, readFilters } from '../webhooks/filters.ts'
import { offlineNow } from '../webhooks/hosts.ts'
import { eventIdOf, queueOf } from '../webhooks/queue.ts'
import { newSecret, secretContext } from '../webhooks/sender.ts'
import { type Context, type ForCallers, notFound, patched } from './context.ts'

/** Each webhook has its own queue and may use one connection. */
const mostWebhooks = 100

async function toApi(store: Context['store'], record: WebhookRecord): Promise<Webhook> {
  return {
    ...pick(record, 'id', 'name', 'url'),
    // Older servers accepted events that no server sends.
    events: record.events.filter((event) => knownEvents.includes(event)),
    selector: record.selector,
    ...(await filtersToApi(store, record)),
    ...pick(record, 'format', 'enabled', 'owner', 'createdAt', 'updatedAt'),
  }
}

/** Whether a change affects which events the webhook gets. */
function changesSubscription(previous: WebhookRecord, next: WebhookRecord): boolean {
  const heard = ({ selector, events, enabled }: WebhookRecord) => [selector, enabled, ...events.toSorted()]
  return !isDeepStrictEqual(heard(previous), heard(next))
}

function deliveryToApi(record: DeliveryRecord): Delivery {
  const fields = pick(
    record,
    'event',
    'at',
    'data',
    'status',
    'tries',
    'nextAt',
    'lastStatus',
    'lastError',
    'endedAt',
  )
  return { id: eventIdOf(record), ...fields }
}

export function createWebhooks(context: Context): ForCallers<WebhookService> {
  const { store, fleet, keys, judge, webhookEvents, deliveries } = context

  async function check(input: WebhookCreate | WebhookPatch, current?: WebhookRecord) {
    const { url, selector, secret } = input
    const { filters, faults } = await readFilters(
      store,
      input,
      current && (await filtersToApi(store, current)),
    )
    const note = (field: string, message: string | null) => {
      if (message !== null) faults.push({ field, message })
    }
    if (url !== undefined) note('url', judge.urlFault(url))
    if (typeof secret === 'string') note('secret', secretFault(secret))
    if (typeof selector === 'string')
      try {
        await runInSlices(
          resolveInSlices(parseSelector(selector, 'selector'), await fleet.directory(), {
            strictness: 'names',
          }),
        )
      } catch (error) {
        if (!(error instanceof RsmError && error.code === 'invalid')) throw error
        faults.push(...error.fields)
      }
    if (faults.length > 0) throw invalid(faults)
    return filters
  }

  async function found(id: number): Promise<Readonly<WebhookRecord>> {
    const record = await store.get('webhooks', id)
    if (!record) throw notFound('webhook', id)
    return record
  }

  return {
    async list(_, query) {
      const where = { equals: { name: query.name?.toLowerCase() } }
      return storePage(store, 'webhooks', query, { where }, (items) =>
        Promise.all(items.map((item) => toApi(store, item))),
      )
    },
    get: async (_, id) => toApi(store, await found(id)),
    async create(caller, input) {
      const filters = await check(input)
      const made = input.secret === undefined ? newSecret() : null
      const at = context.time()
      const offline = await offlineNow(context)
      const record = await store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'administer', { lasting: true })
        if ((await tx.query('webhooks', { limit: 0 })).total >= mostWebhooks)
          throw new RsmError('conflict', `limit of ${mostWebhooks} webhooks reached`)
        const id = await tx.nextId('webhooks')
        const created: WebhookRecord = {
          id,
          name: input.name,
          url: input.url,
          events: input.events,
          selector: input.selector ?? null,
          ...filters,
          secret: keys.seal(made ?? input.secret ?? '', secretContext(id)),
          format: input.format ?? 'JSON',
          enabled: input.enabled ?? true,
          owner: caller.username,
          createdAt: at,
          updatedAt: at,
          offline,
        }
        tx.put('webhooks', created)
        return created
      })
      await webhookEvents.known()
      return { ...(await toApi(store, record)), secret: made }
    },
    async update(caller, id, patch) {
      const filters = await check(patch, await found(id))
      const made = patch.secret === null ? newSecret() : null
      const given = made ?? patch.secret ?? null
      // A new or changed subscription starts from the current state.
      const mayChangeSubscription = [patch.selector, patch.events, patch.enabled].some(
        (each) => each !== undefined,
      )
      const offline = mayChangeSubscription ? await offlineNow(context) : null
      const record = await store.transact(async (tx) => {
        await stillAllowed(tx, caller, 'administer', { lasting: true })
        const current = await tx.get('webhooks', id)
        if (!current) throw notFound('webhook', id)
        const changed: WebhookRecord = {
          ...current,
          name: patch.name ?? current.name,
          url: patch.url ?? current.url,
          events: patch.events ?? current.events,
          selector: patched(patch.selector, current.selector, null),
          ...filters,
          secret: given === null ? current.secret : keys.seal(given, secretContext(id)),
          format: patched(patch.format, current.format, 'JSON'),
          enabled: patch.enabled ?? current.enabled,
          updatedAt: context.time(),
        }
        const next =
          offline !== null && changesSubscription(current, changed) ? { ...changed, offline } : changed
        tx.put('webhooks', next)
        return next
      })
      await webhookEvents.known()
      return { ...(await toApi(store, record)), secret: made }
    },
    async remove(_, id) {
      await store.transact(async (tx) => {
        if (!(await tx.get('webhooks', id))) throw notFound('webhook', id)
        tx.remove('webhooks', id)
        for (const delivery of await tx.find('deliveries', 'webhookId', id))
          tx.remove('deliveries', delivery.id)
      })
      await webhookEvents.known()
      return { id }
    },
    async test(_, id) {
      const outcome = await deliveries.test(await found(id))
      if (outcome === null) throw new RsmError('unavailable', 'the server is shutting down')
      return { delivered: outcome.error === null, ...outcome }
    },
    async deliveries(_, id, query) {
      await found(id)
      const { status } = query
      const equals = status === undefined ? { webhookId: id } : { queue: queueOf(id, status) }
      const sought = { where: { equals }, order: 'desc' } as const
      return storePage(store, 'deliveries', query, sought, (items) => items.map(deliveryToApi))
    },
  }
}
