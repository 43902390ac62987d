import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given, needed } from '../../cli/flags/checks.ts'
import { findWebhook } from '../../cli/names/names.ts'
import { shellWord } from '../../cli/text/sanitize.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { allPages } from '../../client/http/pages.ts'
import type { DeliveryQuery } from '../../core/protocol/http/webhooks.ts'
import { deliveryStatuses } from '../../core/webhooks/webhook.ts'

export default class WebhooksDeliveries extends BaseCommand {
  static override summary = 'List pending and recent deliveries of a webhook, newest first'
  static override examples = [
    "$ rsm webhooks deliveries 'on call'",
    "$ rsm webhooks deliveries 'on call' --status WAITING --limit 10",
  ]
  static override args = { webhook: needed('name of the webhook') }
  static override flags = {
    status: string({ options: [...deliveryStatuses], description: 'only deliveries with this status' }),
    limit: limitFlag,
  }

  async run() {
    const { args, flags } = await this.parse(WebhooksDeliveries)
    const client = await this.client()
    const { id } = await findWebhook(client, args.webhook)
    const query: DeliveryQuery = given({ status: flags.status as DeliveryQuery['status'] })
    const page = await allPages((paging) => client.webhooks.deliveries(id, paging), query, flags.limit)
    const { utc } = flags
    return showList(this, page, {
      noun: 'deliveries',
      filtered: flags.status !== undefined,
      none: `no deliveries yet: rsm webhooks test ${shellWord(args.webhook)}`,
      columns: [
        {
          heading: 'ID',
          value: ({ id }) => id,
          essential: true,
          shortest: ({ id }) => id.slice(-6),
        },
        timeColumn('TIME', ({ at }) => at, utc),
        { heading: 'EVENT', value: (delivery) => delivery.event, essential: true },
        { heading: 'STATUS', value: (delivery) => delivery.status, essential: true },
        { heading: 'TRIES', value: (delivery) => delivery.tries },
        timeColumn('NEXT', ({ nextAt }) => nextAt, utc),
        { heading: 'ERROR', value: (delivery) => delivery.lastError },
      ],
    })
  }
}
