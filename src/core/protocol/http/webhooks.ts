import { deliveryStatuses, webhookEvents, webhookFormats } from '../../webhooks/webhook.ts'
import { Selector } from './clusters.ts'
import { Closed, Id, Line, Nullable, OpaqueId, paging, type Static, Time, Type } from './common.ts'

export const WebhookEvent = Type.Enum([...webhookEvents])
export const WebhookFormat = Type.Enum([...webhookFormats])
export const DeliveryStatus = Type.Enum([...deliveryStatuses])

const Events = Type.Array(WebhookEvent, { minItems: 1, maxItems: webhookEvents.length, uniqueItems: true })
const Url = Line(2048)
const Secret = Type.String({ maxLength: 128 })
const FilterName = Line(128)

export const WebhookCreate = Closed(
  {
    name: Line(128),
    url: Url,
    events: Events,
    /** Limits events about hosts to hosts that it selects. */
    selector: Type.Optional(Selector),
    /** Limits events of tasks and schedules to this schedule, or with `*` to any schedule. */
    schedule: Type.Optional(FilterName),
    /** Limits them to this stored script. */
    script: Type.Optional(FilterName),
    /** Limits them to tasks that this user started, and schedules that this user owns. */
    createdBy: Type.Optional(FilterName),
    /** Generated if left out. */
    secret: Type.Optional(Secret),
    format: Type.Optional(WebhookFormat),
    enabled: Type.Optional(Type.Boolean()),
  },
  {
    examples: [
      {
        name: 'on call',
        url: 'https://alerts.example.org/rsm',
        events: ['task.failed', 'host.offline'],
        selector: '@production',
      },
    ],
  },
)
export type WebhookCreate = Static<typeof WebhookCreate>

export const WebhookPatch = Closed(
  {
    name: Type.Optional(Line(128)),
    url: Type.Optional(Url),
    events: Type.Optional(Events),
    selector: Type.Optional(Nullable(Selector)),
    schedule: Type.Optional(Nullable(FilterName)),
    script: Type.Optional(Nullable(FilterName)),
    createdBy: Type.Optional(Nullable(FilterName)),
    /** Null generates a new one. */
    secret: Type.Optional(Nullable(Secret)),
    format: Type.Optional(Nullable(WebhookFormat)),
    enabled: Type.Optional(Type.Boolean()),
  },
  { examples: [{ events: ['task.failed'], selector: null }] },
)
export type WebhookPatch = Static<typeof WebhookPatch>

export const Webhook = Type.Object({
  id: Id,
  name: Type.String(),
  url: Type.String(),
  events: Type.Array(WebhookEvent),
  selector: Nullable(Type.String()),
  /** Older servers leave out this field and the next two. */
  schedule: Type.Optional(Nullable(Type.String())),
  script: Type.Optional(Nullable(Type.String())),
  createdBy: Type.Optional(Nullable(Type.String())),
  format: WebhookFormat,
  enabled: Type.Boolean(),
  /** User who created it. */
  owner: Type.String(),
  createdAt: Time,
  updatedAt: Time,
})
export type Webhook = Static<typeof Webhook>

/** `secret` is shown only once, if the server generated it; else null. */
export const WebhookSaved = Type.Object({ ...Webhook.properties, secret: Nullable(Type.String()) })
export type WebhookSaved = Static<typeof WebhookSaved>

/** `status`: HTTP status of the receiver, null if it did not answer; `error`: why it does not count as delivered. */
export const WebhookTest = Type.Object({
  delivered: Type.Boolean(),
  status: Nullable(Type.Integer()),
  error: Nullable(Type.String()),
})
export type WebhookTest = Static<typeof WebhookTest>

const EventData = Type.Record(
  Type.String(),
  Type.Union([
    Type.String(),
    Type.Number(),
    Type.Boolean(),
    Type.Null(),
    Type.Array(Type.String()),
    Type.Record(Type.String(), Type.Number()),
  ]),
)

export const DeliveryQuery = Closed({
  ...paging,
  status: Type.Optional(DeliveryStatus),
})
export type DeliveryQuery = Static<typeof DeliveryQuery>

/** An event on its way to a webhook. The receiver gets `id` as `webhook-id`, the same at each attempt. */
export const Delivery = Type.Object({
  id: OpaqueId,
  event: WebhookEvent,
  at: Time,
  data: EventData,
  status: DeliveryStatus,
  tries: Type.Integer(),
  /** Next attempt; null before the first one, and once the delivery has ended. */
  nextAt: Nullable(Time),
  /** Last attempt: HTTP status of the receiver, and why it does not count as delivered. */
  lastStatus: Nullable(Type.Integer()),
  lastError: Nullable(Type.String()),
  endedAt: Nullable(Time),
})
export type Delivery = Static<typeof Delivery>
