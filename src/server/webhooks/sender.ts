import { createHmac, randomBytes } from 'node:crypto'
import type { Clock } from '../../disk/clock.ts'
import { opaqueId } from '../storage/ids.ts'
import type { Keys } from '../storage/ports/keys.ts'
import { bodyOf, type Notification } from './body.ts'
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
