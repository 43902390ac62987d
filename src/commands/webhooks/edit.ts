import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refuseEmpty } from '../../cli/command/failure.ts'
import { given, needed } from '../../cli/flags/checks.ts'
import { readWebhook, webhookFlags } from '../../cli/flags/webhook.ts'
import { findWebhook } from '../../cli/names/names.ts'
import type { WebhookPatch } from '../../core/protocol/http/webhooks.ts'

export default class WebhooksEdit extends BaseCommand {
  static override summary = 'Change a webhook (for administrators)'
  static override description =
    "Prints a new secret on stdout, if the server generated it. '' removes a selector or a filter."
  static override examples = [
    "$ rsm webhooks edit 'on call' --event task.failed",
    "$ rsm webhooks edit 'on call' --schedule nightly",
    "$ rsm webhooks edit 'on call' --new-secret",
    "$ rsm webhooks edit 'on call' --disable",
  ]
  static override args = { webhook: needed('name of the webhook') }
  static override flags = {
    ...webhookFlags,
    name: string({ description: 'new name' }),
    url: string({ description: 'new URL' }),
    enable: boolean({ exclusive: ['disable'], description: 'send again, pending events included' }),
    disable: boolean({ exclusive: ['enable'], description: 'stop sending to it' }),
    'new-secret': boolean({
      exclusive: ['secret-file'],
      description: 'generate a new secret; the old one becomes invalid',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(WebhooksEdit)
    const { selector, schedule, script, createdBy, ...rest } = readWebhook(flags)
    const orNone = (filter: string | undefined) => (filter === '' ? null : filter)
    const patch: WebhookPatch = {
      ...rest,
      ...given({
        name: flags.name,
        url: flags.url,
        selector: orNone(selector),
        schedule: orNone(schedule),
        script: orNone(script),
        createdBy: orNone(createdBy),
        enabled: flags.enable || flags.disable ? !flags.disable : undefined,
        ...(flags['new-secret'] ? { secret: null } : {}),
      }),
    }
    refuseEmpty(patch, 'webhooks edit')
    const client = await this.client()
    const { id } = await findWebhook(client, args.webhook)
    const webhook = await client.webhooks.update(id, patch)
    if (webhook.secret !== null) this.print(webhook.secret)
    this.done(`changed ${webhook.name}`)
    return webhook
  }
}
