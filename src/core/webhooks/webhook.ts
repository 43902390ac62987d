/** Events that a webhook can report (contract §16). */
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

export type EventData = Readonly<
  Record<string, string | number | boolean | null | string[] | Record<string, number>>
>

/** Value of the filter `schedule` that matches every schedule. */
export const anySchedule = '*'

/** Filters of a webhook besides its selector: names, or null for any. */
export const webhookFilters = ['schedule', 'script', 'createdBy'] as const
export type WebhookFilter = (typeof webhookFilters)[number]

/** Body that a receiver gets: the event itself, or a text in the format of a chat. */
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

/** Milliseconds between attempts; after these, an hour each (contract §16). */
const retryPauses = [5 * second, 30 * second, 2 * minute, 10 * minute]
/** Milliseconds after its event at which a delivery is given up. */
const triedFor = 24 * hour

/** Longest delay of an attempt in milliseconds; a longer one means that the clock was ahead when it was scheduled. */
const putOffFor = hour + minute

export function secretFault(secret: string): string | null {
  const shape = `must be ${secretPrefix} and the base64 of ${shortestSecret} to ${longestSecret} bytes`
  const text = secret.slice(secretPrefix.length)
  if (
    !secret.startsWith(secretPrefix) ||
    !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)
  )
    return shape
  const bytes = (text.length / 4) * 3 - (text.match(/={1,2}$/)?.[0].length ?? 0)
  return bytes < shortestSecret || bytes > longestSecret ? shape : null
}

/** Whether a delivery is given up, `age` milliseconds after its event. */
export const isTimeOver = (age: number): boolean => age >= triedFor

/** Milliseconds until the next attempt after `tries` failed ones, `age` milliseconds after the event; null: never. */
export function nextTry(tries: number, age: number): number | null {
  const pause = retryPauses[tries - 1] ?? hour
  return isTimeOver(age + pause) ? null : pause
}

/** Due also if the clock was ahead when it was scheduled. Times are milliseconds since 1970. */
export const isDue = (nextAt: number, now: number): boolean => nextAt <= now || nextAt - now > putOffFor

/**
 * Ids of the changes to report now; `since` is when each changed. A change is reported after `grace`. If others
 * changed meanwhile, it waits for their grace too, but at most another `grace`. So hosts that go down together are
 * one event. All in milliseconds of one clock.
 */
export function dueTogether(since: ReadonlyMap<number, number>, now: number, grace: number): number[] {
  const due = [...since].filter(([, at]) => now - at >= grace)
  const isOverdue = due.some(([, at]) => now - at >= 2 * grace)
  return due.length === since.size || isOverdue ? due.map(([id]) => id) : []
}
