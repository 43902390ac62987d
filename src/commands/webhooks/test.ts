import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findWebhook } from '../../cli/names/names.ts'

export default class WebhooksTest extends BaseCommand {
  static override summary = 'Send a test event to a webhook, ahead of pending ones; exit 1 if not delivered'
  static override examples = ["$ rsm webhooks test 'on call'"]
  static override args = { webhook: needed('name of the webhook') }

  async run() {
    const { args } = await this.parse(WebhooksTest)
    const client = await this.client()
    const { id } = await findWebhook(client, args.webhook)
    const outcome = await client.webhooks.test(id)
    if (!this.globals.json)
      this.print(
        outcome.delivered
          ? `delivered: the receiver answered ${outcome.status}`
          : `not delivered: ${outcome.error}`,
      )
    process.exitCode = outcome.delivered ? 0 : 1
    return outcome
  }
}
