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

/** The name of an event's box in the form. */
export const eventField = (event: WebhookEvent): string => `event ${event}`

/** The body of `POST /api/webhooks` for the fields of the form. Errors: `invalid` where no event is chosen. */
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

/** The body of PATCH: all that the form says, where an empty filter takes it away and an empty secret keeps it. */
export const webhookPatchOf = (field: Field): WebhookPatch => ({
  selector: null,
  schedule: null,
  script: null,
  createdBy: null,
  ...webhookOf(field),
})
