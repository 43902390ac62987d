import { removalCommand } from '../../cli/command/removal.ts'
import { findWebhook } from '../../cli/names/names.ts'

export default removalCommand({
  summary: 'Remove a webhook and its pending deliveries',
  examples: ['$ rsm webhooks remove chat --yes'],
  arg: ['webhook', 'names of webhooks'],
  noun: 'webhook',
  nameOf: ({ name }) => name,
  find: findWebhook,
  remove: (client, id) => client.webhooks.remove(id),
})
