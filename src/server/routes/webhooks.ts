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
import { webhookCalls } from '../../core/services.ts'
import type { AppInstance } from '../http/app.ts'
import type { RouteDependencies } from './dependencies.ts'
import { serve } from './serve.ts'

const noun = {
  noun: 'webhooks',
  tag: 'webhooks',
  read: { users: 'administer' },
  write: { users: 'administer', lasting: true },
} as const

export function webhookRoutes(app: AppInstance, { services: { webhooks } }: RouteDependencies): void {
  serve(app, webhookCalls, webhooks, noun, {
    list: { id: 'listWebhooks', summary: 'List webhooks', query: NamedQuery, answer: PageOf(Webhook) },
    create: {
      id: 'createWebhook',
      summary: 'Create a webhook; a generated secret is shown only once',
      body: WebhookCreate,
      answer: WebhookSaved,
      created: true,
      errors: ['conflict'],
    },
    get: { id: 'getWebhook', summary: 'Read a webhook', answer: Webhook },
    update: {
      id: 'updateWebhook',
      summary: 'Change a webhook; a secret of null generates a new one, which is shown only once',
      body: WebhookPatch,
      answer: WebhookSaved,
      errors: ['conflict'],
    },
    remove: { id: 'deleteWebhook', summary: 'Delete a webhook and its pending deliveries', answer: IdOnly },
    test: {
      id: 'testWebhook',
      summary: 'Send a test event at once and return the result',
      answer: WebhookTest,
    },
    deliveries: {
      id: 'listDeliveries',
      summary: 'List pending and recent deliveries of a webhook, newest first',
      query: DeliveryQuery,
      answer: PageOf(Delivery),
    },
  })
}
