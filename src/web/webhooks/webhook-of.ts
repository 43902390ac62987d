import { invalid } from '../../core/errors.ts'
import type { WebhookCreate, WebhookPatch } from '../../core/protocol/http/webhooks.ts'
import {
  type WebhookEvent,
  type WebhookFilter,
  type WebhookFormat,
  webhookEvents,
  webhookFilters,
} from '../../core/webhooks/webhook.ts'

type Field = (name: string) => string

/** Name of an event's checkbox in the form. */
export const eventField = (event: WebhookEvent): string => `event ${event}`

/** Body of `POST /api/webhooks` from the form. Errors: `invalid` without events. */
export function webhookOf(field: Field): WebhookCreate & { format: WebhookFormat } {
  const events = webhookEvents.filter((event) => field(eventField(event)) !== '')
  if (events.length === 0) throw invalid([{ field: 'events', message: 'choose at least one' }])
  const selector = field('selector').trim()
  const secret = field('secret').trim()
  return {
    name: field('name').trim(),
    url: field('url').trim(),
    events,
    format: field('format') as WebhookFormat,
    ...(selector !== '' && { selector }),
    ...filtersOf(field),
    ...(secret !== '' && { secret }),
  }
}

const filtersOf = (field: Field): Pick<WebhookCreate, WebhookFilter> =>
  Object.fromEntries(
    webhookFilters.map((filter) => [filter, field(filter).trim()]).filter(([, name]) => name !== ''),
  )

/** Body of PATCH: empty filters are removed, an empty secret is kept. */
export const webhookPatchOf = (field: Field): WebhookPatch => ({
  selector: null,
  schedule: null,
  script: null,
  createdBy: null,
  ...webhookOf(field),
})
