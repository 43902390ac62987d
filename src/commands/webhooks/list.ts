import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { allPages } from '../../client/http/pages.ts'
import type { Webhook } from '../../core/protocol/http/webhooks.ts'
import { anySchedule } from '../../core/webhooks/webhook.ts'

/** `schedule nightly, by ann`; null for none. */
function filtersOf({ schedule, script, createdBy }: Webhook): string | null {
  const filters = { schedule: schedule === anySchedule ? 'any' : schedule, script, by: createdBy }
  const said = Object.entries(filters).flatMap(([name, value]) => (value ? [`${name} ${value}`] : []))
  return said.length === 0 ? null : said.join(', ')
}

export default class WebhooksList extends BaseCommand {
  static override summary = 'List webhooks (for administrators)'
  static override examples = ['$ rsm webhooks list']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(WebhooksList)
    const client = await this.client()
    const page = await allPages((paging) => client.webhooks.list(paging), {}, flags.limit)
    return showList(this, page, {
      noun: 'webhooks',
      filtered: false,
      none: 'no webhooks: rsm webhooks add NAME URL --event task.failed',
      columns: [
        { heading: 'ID', value: (webhook) => webhook.id, essential: true },
        { heading: 'NAME', value: (webhook) => webhook.name, essential: true },
        { heading: 'EVENTS', value: (webhook) => webhook.events.join(', ') },
        { heading: 'SELECTOR', value: (webhook) => webhook.selector },
        { heading: 'FILTERS', value: filtersOf },
        { heading: 'FORMAT', value: (webhook) => webhook.format },
        { heading: 'ENABLED', value: (webhook) => (webhook.enabled ? 'yes' : 'no') },
        { heading: 'URL', value: (webhook) => webhook.url },
      ],
    })
  }
}
