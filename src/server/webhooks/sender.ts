import { createHmac, randomBytes } from 'node:crypto'
import { shortened } from '../../core/text/pieces.ts'
import type { EventData, WebhookFormat } from '../../core/webhooks/webhook.ts'
import type { Clock } from '../../disk/clock.ts'
import { opaqueId } from '../storage/ids.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { Webhook } from './events.ts'
import type { Outcome, Post } from './post.ts'
import { type Delivery, eventIdOf } from './queue.ts'

/** Context of a webhook's sealed secret. */
export const secretContext = (webhookId: number): string => `webhooks/${webhookId}/secret`

const noSecret: Outcome = {
  status: null,
  error: 'its secret cannot be decrypted, because the key is gone: set a new one',
}

export interface Sender {
  send(webhook: Webhook, delivery: Delivery, stop: AbortSignal): Promise<Outcome | null>
  /** Sends a `webhook.test` event, bypassing the queue. */
  test(webhook: Webhook, stop: AbortSignal): Promise<Outcome | null>
}

export function createSender({ post, keys, clock }: { post: Post; keys: Keys; clock: Clock }): Sender {
  function secretOf({ id, secret }: Webhook): string | null {
    try {
      return secret === null ? null : keys.open(secret, secretContext(id))
    } catch {
      return null
    }
  }

  async function sendNotification(
    webhook: Webhook,
    id: string,
    notification: Notification,
    stop: AbortSignal,
  ): Promise<Outcome | null> {
    const secret = secretOf(webhook)
    if (secret === null) return noSecret
    const body = bodyOf(webhook.format, notification)
    return post({ url: webhook.url, headers: signed(secret, id, clock.now(), body), body }, stop)
  }

  return {
    send(webhook, delivery, stop) {
      const { event: type, at, data } = delivery
      return sendNotification(webhook, eventIdOf(delivery), { type, at, data }, stop)
    },
    test(webhook, stop) {
      const now = clock.now()
      const notification = {
        type: 'webhook.test',
        at: new Date(now).toISOString(),
        data: { name: webhook.name },
      }
      return sendNotification(webhook, opaqueId(now), notification, stop)
    },
  }
}

/** Generates a secret with the length of a SHA-256. */
export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

/** Headers of Standard Webhooks for a body; `at`: time of this attempt, milliseconds since 1970. */
export function signed(secret: string, id: string, at: number, body: string): Record<string, string> {
  const timestamp = String(Math.floor(at / 1000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` }
}

/** An event as receivers see it; `at`: ISO 8601. */
export interface Notification {
  readonly type: string
  readonly at: string
  readonly data: EventData
}

/** Characters that every chat accepts in one message. */
const longestText = 1_900

/** Characters of a node set in a line of text. */
const longestNodes = 200

/** Renders an event; the result is the same for every attempt. */
export function bodyOf(format: WebhookFormat, notification: Notification): string {
  const { type, at, data } = notification
  if (format === 'JSON') return JSON.stringify({ type, timestamp: at, data })
  const { text, link } = textOf(notification)
  switch (format) {
    case 'SLACK':
      return JSON.stringify({ text: forSlack(text + link) })
    case 'DISCORD':
      return JSON.stringify({
        content: forDiscord(text).slice(0, 2_000 - link.length) + link,
        allowed_mentions: { parse: [] },
      })
    case 'TEAMS': {
      const run = { type: 'TextRun', text }
      const linkRun = { type: 'TextRun', text: link, selectAction: { type: 'Action.OpenUrl', url: link } }
      return JSON.stringify({
        type: 'message',
        attachments: [
          {
            contentType: 'application/vnd.microsoft.card.adaptive',
            content: {
              type: 'AdaptiveCard',
              version: '1.2',
              // A text run renders no Markdown, and only actions become links.
              body: [{ type: 'RichTextBlock', inlines: link === '' ? [run] : [run, linkRun] }],
            },
          },
        ],
      })
    }
  }
}

const countsText = (counts: readonly (readonly [status: string, count: number])[]): string =>
  counts.map(([status, count]) => `${count} ${status}`).join(', ')

function fieldOf({ data }: Notification, field: string): string {
  const value = data[field] ?? ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Which task ended how and where, e.g. `schedule nightly FAILED on web1 (1 of 3 hosts)`. */
function endOfTask(notification: Notification): string {
  const said = (field: string) => fieldOf(notification, field)
  const counts = Object.entries((notification.data['counts'] ?? {}) as Record<string, number>)
  const script = said('script') === '' ? '' : ` (${said('script')})`
  const what =
    said('scheduleId') === ''
      ? `task ${said('taskId')}${script} of ${said('createdBy')}`
      : `schedule ${said('schedule') || said('scheduleId')}`
  // Deliveries written by an older server have no nodes.
  if (said('status') !== 'FAILED' || notification.data['nodes'] === undefined)
    return `${what} ${said('status')} (${countsText(counts)})`
  const others = counts.filter(([each]) => each !== 'SUCCESS')
  const kinds = others.every(([each]) => each === 'FAILED') ? '' : `: ${countsText(others)}`
  const where = said('nodes') === '' ? '' : ` on ${shortened(said('nodes'), longestNodes)}`
  const hosts = said('hostCount') === '1' ? 'host' : 'hosts'
  return `${what} FAILED${where} (${said('count')} of ${said('hostCount')} ${hosts}${kinds})`
}

function sentence(notification: Notification): string {
  const said = (field: string) => fieldOf(notification, field)
  const hosts =
    said('count') === '1' ? `host ${said('nodes')} is` : `${said('count')} hosts ${said('nodes')} are`
  switch (notification.type) {
    case 'task.failed':
    case 'task.ended':
      return endOfTask(notification)
    case 'host.offline':
      return `${hosts} offline`
    case 'host.online':
      return `${hosts} back online`
    case 'agent.revoked':
      return `the agent of host ${said('hostname')} was revoked`
    case 'schedule.suspended':
      return `schedule ${said('name')} is suspended: ${said('why')}`
    case 'schedule.skipped': {
      const slots = said('count') === '1' ? said('plannedAt') : `${said('firstAt')} to ${said('plannedAt')}`
      return `schedule ${said('name')} did not run at ${slots}: ${said('why')}`
    }
    case 'server.restore':
      return `a backup was restored; ${said('tasks')} ${said('tasks') === '1' ? 'task is' : 'tasks are'} held until \`rsm server confirm-restore\`: ${said('reason')}`
    case 'webhook.test':
      return `a test of the webhook ${said('name')}`
    default:
      return notification.type
  }
}

/**
 * The text, and the URL to append, or else a command that shows a schedule's task. Separate, because chats
 * must get the URL unescaped.
 */
function textOf(notification: Notification): { text: string; link: string } {
  const { url, scheduleId } = notification.data
  const taskId = fieldOf(notification, 'taskId')
  const command = taskId !== '' && typeof scheduleId === 'number' ? `: rsm tasks show ${taskId}` : ''
  const link = typeof url === 'string' ? url.slice(0, longestText / 2) : ''
  const text = shortened(`rsm: ${sentence(notification)}`, longestText - link.length - command.length)
  return link === '' ? { text: text + command, link } : { text: `${text}: `, link }
}

/** Escapes mentions and links (docs.slack.dev, "Escaping text"). */
const forSlack = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const forDiscord = (text: string) => text.replaceAll(/[\\`*_~|[\]()<>#]/g, '\\$&')
