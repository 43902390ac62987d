/** What a webhook can be told of (contract §16). */
export const webhookEvents = [
  'task.failed',
  'task.ended',
  'schedule.suspended',
  'schedule.skipped',
  'host.offline',
  'host.online',
  'agent.revoked',
  'server.restore',
] as const
export type WebhookEvent = (typeof webhookEvents)[number]

/** What is told of an event; which fields there are its type says. */
export type EventData = Readonly<
  Record<string, string | number | boolean | null | string[] | Record<string, number>>
>

/** Value of the filter `schedule` that matches every schedule. */
export const anySchedule = '*'

/** Filters of a webhook beside its selector: names, or null for any. */
export const webhookFilters = ['schedule', 'script', 'createdBy'] as const
export type WebhookFilter = (typeof webhookFilters)[number]

/** What a receiver gets: the event itself, or a text in the shape that a chat takes. */
export const webhookFormats = ['JSON', 'SLACK', 'TEAMS', 'DISCORD'] as const
export type WebhookFormat = (typeof webhookFormats)[number]

export const deliveryStatuses = ['WAITING', 'DELIVERED', 'GAVE_UP'] as const
export type DeliveryStatus = (typeof deliveryStatuses)[number]

const secretPrefix = 'whsec_'
/** Bytes (Standard Webhooks, "Signature scheme"). */
const shortestSecret = 24
const longestSecret = 64

/** What is wrong with the secret of a webhook, or null. */
export function secretFault(secret: string): string | null {
  const shape = `takes ${secretPrefix} and the base64 of ${shortestSecret} to ${longestSecret} bytes`
  const text = secret.slice(secretPrefix.length)
  if (
    !secret.startsWith(secretPrefix) ||
    !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
  )
    return shape
  const bytes = (text.length / 4) * 3 - (text.match(/={1,2}$/)?.[0].length ?? 0)
  return bytes < shortestSecret || bytes > longestSecret ? shape : null
}
