import type { EventData, WebhookFormat } from '../../core/webhooks/webhook.ts'

/** What happened, as receivers are told; `at`: ISO 8601. */
export interface Told {
  readonly type: string
  readonly at: string
  readonly data: EventData
}

/** Characters that every chat takes in one message. */
const longestText = 1_900

const counts = (data: EventData): string =>
  Object.entries((data['counts'] ?? {}) as Record<string, number>)
    .map(([status, count]) => `${count} ${status}`)
    .join(', ')

/** An event in a line for people. */
function sentence({ type, data }: Told): string {
  const said = (field: string): string => {
    const value = data[field] ?? ''
    return typeof value === 'object' ? JSON.stringify(value) : String(value)
  }
  const hosts =
    said('count') === '1' ? `host ${said('nodes')} is` : `${said('count')} hosts ${said('nodes')} are`
  switch (type) {
    case 'task.failed':
    case 'task.ended': {
      const script = said('script') === '' ? '' : ` (${said('script')})`
      return `task ${said('taskId')}${script} of ${said('createdBy')} is ${said('status')}: ${counts(data)}`
    }
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
      return type
  }
}

function textOf(told: Told): string {
  const text = `rsm: ${sentence(told)}`
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text
}

/** Nothing in it is a mention or a link (docs.slack.dev, "Escaping text"). */
const forSlack = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const forDiscord = (text: string) => text.replaceAll(/[\\`*_~|[\]()<>#]/g, '\\$&')

/** The same bytes for every try. */
export function bodyOf(format: WebhookFormat, told: Told): string {
  const { type, at, data } = told
  switch (format) {
    case 'JSON':
      return JSON.stringify({ type, timestamp: at, data })
    case 'SLACK':
      return JSON.stringify({ text: forSlack(textOf(told)) })
    case 'DISCORD':
      return JSON.stringify({
        content: forDiscord(textOf(told)).slice(0, 2_000),
        allowed_mentions: { parse: [] },
      })
    case 'TEAMS':
      return JSON.stringify({
        type: 'message',
        attachments: [
          {
            contentType: 'application/vnd.microsoft.card.adaptive',
            content: {
              type: 'AdaptiveCard',
              version: '1.2',
              // No Markdown in a run of text.
              body: [{ type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: textOf(told) }] }],
            },
          },
        ],
      })
  }
}
