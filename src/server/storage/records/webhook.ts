import type {
  DeliveryStatus,
  EventData,
  WebhookEvent,
  WebhookFormat,
} from '../../../core/webhooks/webhook.ts'
import type { Sealed } from '../ports/keys.ts'

/** Record that a filter names, by id and by its name when the filter was set. */
export interface FilterRecord {
  id: number
  name: string
}

export interface WebhookRecord {
  id: number
  name: string
  url: string
  events: WebhookEvent[]
  selector: string | null
  /** Filters; null or absent, as in records of older servers: any. */
  schedule?: FilterRecord | '*' | null
  script?: FilterRecord | null
  createdBy?: FilterRecord | null
  /** Null if the key that sealed it is lost: deliveries stop until a new one is set. */
  secret: Sealed | null
  format: WebhookFormat
  enabled: boolean
  owner: string
  createdAt: string
  updatedAt: string
  /** Hosts reported offline to it, or offline before it was created: their ids, folded. */
  offline: string
}

/** One event for one webhook. The id is `webhookId/eventId`; ids of events ascend. */
export interface DeliveryRecord {
  id: string
  webhookId: number
  event: WebhookEvent
  at: string
  data: EventData
  status: DeliveryStatus
  tries: number
  nextAt: string | null
  lastStatus: number | null
  lastError: string | null
  endedAt: string | null
}
