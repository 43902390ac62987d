import { deliveryStatuses, webhookEvents, webhookFormats } from '../../webhooks/webhook.ts'
import { Selector } from './clusters.ts'
import { Closed, Id, Line, Nullable, OpaqueId, paging, Time } from './common.ts'
import { type Static, Type } from './schema.ts'

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
    /** Of events about hosts only those about hosts that it names. */
    selector: Type.Optional(Selector),
    /** Limits events of tasks and schedules to this schedule, or with `*` to any schedule. */
    schedule: Type.Optional(FilterName),
    /** Only those of this stored script. */
    script: Type.Optional(FilterName),
    /** Only those of tasks that this user started, and of schedules that this user owns. */
    createdBy: Type.Optional(FilterName),
    /** Made where it is left out. */
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
    /** Null: a new one is made. */
    secret: Type.Optional(Nullable(Secret)),
    format: Type.Optional(Nullable(WebhookFormat)),
    enabled: Type.Optional(Type.Boolean()),
  },
  { examples: [{ events: ['task.failed'], selector: null }] },
)
export type WebhookPatch = Static<typeof WebhookPatch>

/** Where the server says what has happened. */
export const Webhook = Type.Object({
  id: Id,
  name: Type.String(),
  url: Type.String(),
  events: Type.Array(WebhookEvent),
  selector: Nullable(Type.String()),
  /** Absent in answers of older servers. */
  schedule: Type.Optional(Nullable(Type.String())),
  script: Type.Optional(Nullable(Type.String())),
  createdBy: Type.Optional(Nullable(Type.String())),
  format: WebhookFormat,
  enabled: Type.Boolean(),
  /** Who made it. */
  owner: Type.String(),
  createdAt: Time,
  updatedAt: Time,
})
export type Webhook = Static<typeof Webhook>

/** `secret` is shown only once, where the server has made it; else it is null. */
export const WebhookSaved = Type.Object({ ...Webhook.properties, secret: Nullable(Type.String()) })
export type WebhookSaved = Static<typeof WebhookSaved>

/** `status`: what the receiver answered, null where it gave no answer; `error`: why it does not count as delivered. */
export const WebhookTest = Type.Object({
  delivered: Type.Boolean(),
  status: Nullable(Type.Integer()),
  error: Nullable(Type.String()),
})
export type WebhookTest = Static<typeof WebhookTest>

/** What is told of an event; which fields there are its type says. */
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

/** An event on its way to a webhook. `id` is what the receiver sees as `webhook-id`, the same at each try. */
export const Delivery = Type.Object({
  id: OpaqueId,
  event: WebhookEvent,
  /** When it happened. */
  at: Time,
  data: EventData,
  status: DeliveryStatus,
  tries: Type.Integer(),
  /** When it is tried again; null before the first try, and when it has ended. */
  nextAt: Nullable(Time),
  /** Of the last try: what the receiver answered, and why that does not count. */
  lastStatus: Nullable(Type.Integer()),
  lastError: Nullable(Type.String()),
  endedAt: Nullable(Time),
})
export type Delivery = Static<typeof Delivery>
