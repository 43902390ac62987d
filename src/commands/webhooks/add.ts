import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { given, needed } from '../../cli/flags/checks.ts'
import { readWebhook, webhookFlags } from '../../cli/flags/webhook.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { RsmError } from '../../core/errors.ts'

export default class WebhooksAdd extends BaseCommand {
  static override summary = 'Send events to a URL (for administrators)'
  static override description =
    'Prints the secret on stdout, if the server generated it. The receiver uses it to verify signatures.'
  static override examples = [
    "$ rsm webhooks add 'on call' https://alerts.example.org/rsm --event task.failed,host.offline",
    "$ rsm webhooks add nightly https://alerts.example.org/rsm --event task.failed --schedule '*'",
    '$ rsm webhooks add chat https://hooks.slack.com/services/T0/B0/x --event host.offline,host.online --format slack -w @production',
  ]
  static override args = {
    name: needed('name of the webhook'),
    url: needed('URL to send to: https, at a public address'),
  }
  static override flags = {
    ...webhookFlags,
    disabled: boolean({ description: 'add it, but send nothing yet' }),
  }

  async run() {
    const { args, flags } = await this.parse(WebhooksAdd)
    const { events, format, ...rest } = readWebhook(flags)
    if (events === undefined)
      throw new RsmError('usage', 'no events: choose them with --event', {
        hint: 'for example: --event task.failed',
      })
    const client = await this.client()
    const webhook = await client.webhooks.create({
      name: args.name,
      url: args.url,
      events,
      ...rest,
      ...given({ format: format ?? undefined, enabled: flags.disabled ? false : undefined }),
    })
    if (webhook.secret !== null) {
      this.print(webhook.secret)
      this.hint('shown only once: give it to the receiver, which needs it to verify signatures')
    }
    this.done(`added ${webhook.name} (id ${webhook.id})`)
    this.hint(`next: rsm webhooks test ${shellWord(webhook.name)}`)
    return webhook
  }
}
