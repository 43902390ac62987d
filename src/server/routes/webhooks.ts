import { IdOnly, NamedQuery, PageOf } from '../../core/protocol/http/common.ts'
import {
  Delivery,
  DeliveryQuery,
  Webhook,
  WebhookCreate,
  WebhookPatch,
  WebhookSaved,
  WebhookTest,
} from '../../core/protocol/http/webhooks.ts'
import type { AppInstance } from '../http/app.ts'
import { userOf } from '../http/auth.ts'
import { idOf, operation } from '../http/operation.ts'
import type { RouteDependencies } from './dependencies.ts'

const allow = { users: 'administer' } as const
const write = { users: 'administer', lasting: true } as const
const exists = 'webhooks' as const
const tag = 'webhooks' as const

export function webhookRoutes(app: AppInstance, { services: { webhooks } }: RouteDependencies): void {
  app.get(
    '/api/webhooks',
    operation({
      id: 'listWebhooks',
      tag,
      summary: 'List webhooks',
      allow,
      query: NamedQuery,
      answer: PageOf(Webhook),
    }),
    (request) => webhooks.list(userOf(request), request.query),
  )
  app.post(
    '/api/webhooks',
    operation({
      id: 'createWebhook',
      tag,
      summary: 'Make a webhook; a secret that the server makes is shown only once',
      allow: write,
      body: WebhookCreate,
      answer: WebhookSaved,
      created: true,
      errors: ['conflict'],
      audit: { action: 'webhook.create', object: 'webhook' },
    }),
    (request) => webhooks.create(userOf(request), request.body),
  )
  app.get(
    '/api/webhooks/:id',
    operation({ id: 'getWebhook', tag, summary: 'Read a webhook', allow, exists, answer: Webhook }),
    (request) => webhooks.get(userOf(request), idOf(request)),
  )
  app.patch(
    '/api/webhooks/:id',
    operation({
      id: 'updateWebhook',
      tag,
      summary: 'Change a webhook; a secret of null makes a new one, which is shown only once',
      allow: write,
      exists,
      body: WebhookPatch,
      answer: WebhookSaved,
      errors: ['conflict'],
      audit: { action: 'webhook.update', object: 'webhook' },
    }),
    (request) => webhooks.update(userOf(request), idOf(request), request.body),
  )
  app.delete(
    '/api/webhooks/:id',
    operation({
      id: 'deleteWebhook',
      tag,
      summary: 'Delete a webhook and its pending deliveries',
      allow: write,
      exists,
      answer: IdOnly,
      usesReserve: true,
      audit: { action: 'webhook.delete', object: 'webhook' },
    }),
    (request) => webhooks.remove(userOf(request), idOf(request)),
  )
  app.post(
    '/api/webhooks/:id/test',
    operation({
      id: 'testWebhook',
      tag,
      summary: 'Send a test event at once, and answer what came of it',
      allow: write,
      exists,
      answer: WebhookTest,
      audit: { action: 'webhook.test', object: 'webhook' },
    }),
    (request) => webhooks.test(userOf(request), idOf(request)),
  )
  app.get(
    '/api/webhooks/:id/deliveries',
    operation({
      id: 'listDeliveries',
      tag,
      summary: 'List pending and recent deliveries of a webhook, newest first',
      allow,
      exists,
      query: DeliveryQuery,
      answer: PageOf(Delivery),
    }),
    (request) => webhooks.deliveries(userOf(request), idOf(request), request.query),
  )
}
