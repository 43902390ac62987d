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

const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** Milliseconds from one try to the next; after these, an hour each (contract §16). */
const retryPauses = [5 * second, 30 * second, 2 * minute, 10 * minute]
/** Milliseconds from its event after which a delivery is no longer tried. */
const triedFor = 24 * hour

/** No clock that went on as it should has put a try off for so long, in milliseconds. */
const putOffFor = hour + minute

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

/** Whether the time of a delivery is over, whose event is `age` milliseconds old. */
export const isTimeOver = (age: number): boolean => age >= triedFor

/** Milliseconds until a delivery is tried again that has failed `tries` times and whose event is `age` old; null: never. */
export function nextTry(tries: number, age: number): number | null {
  const pause = retryPauses[tries - 1] ?? hour
  return isTimeOver(age + pause) ? null : pause
}

/** Whether a try is due: also where the clock was ahead when it was put off. Times are milliseconds since 1970. */
export const isDue = (nextAt: number, now: number): boolean => nextAt <= now || nextAt - now > putOffFor

/**
 * Which of these are told of now. `since`: when each changed. What has been so for `grace` is told; where others have changed
 * meanwhile it waits for their grace, too, so that hosts that go down together are one event, but no longer than another
 * `grace`. All in milliseconds of one clock.
 */
export function dueTogether(since: ReadonlyMap<number, number>, now: number, grace: number): number[] {
  const due = [...since].filter(([, at]) => now - at >= grace)
  const isOverdue = due.some(([, at]) => now - at >= 2 * grace)
  return due.length === since.size || isOverdue ? due.map(([id]) => id) : []
}
