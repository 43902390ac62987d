import type { EventData, WebhookEvent } from '../../core/webhooks/webhook.ts'
import { isoTime } from '../../disk/clock.ts'
import { opaqueId } from './ids.ts'
import type { RestoreNote } from './records/run.ts'
import type { DeliveryRecord, WebhookRecord } from './records/webhook.ts'

type Webhook = Readonly<WebhookRecord>

export const wantsIt = ({ enabled, events }: Webhook, type: WebhookEvent): boolean =>
  enabled && events.includes(type)

export function deliveryOf(
  { id: webhookId }: Webhook,
  event: WebhookEvent,
  data: EventData,
  now: number,
): DeliveryRecord {
  return {
    id: `${webhookId}/${opaqueId(now)}`,
    webhookId,
    event,
    at: isoTime(now),
    data,
    status: 'WAITING',
    tries: 0,
    nextAt: null,
    lastStatus: null,
    lastError: null,
    endedAt: null,
  }
}

export const restoreData = ({ noticedAt, reason, hostId, agentId, taskIds }: RestoreNote): EventData => ({
  noticedAt,
  reason,
  hostId,
  agentId,
  tasks: taskIds.length,
})
