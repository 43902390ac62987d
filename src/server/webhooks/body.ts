import { shortened } from '../../core/text/pieces.ts'
import type { EventData, WebhookFormat } from '../../core/webhooks/webhook.ts'

/** What happened, as receivers are told; `at`: ISO 8601. */
export interface Notification {
  readonly type: string
  readonly at: string
  readonly data: EventData
}

/** Characters that every chat takes in one message. */
const longestText = 1_900

/** Characters of a node set in a line of text. */
const longestNodes = 200

const countsText = (counts: readonly (readonly [status: string, count: number])[]): string =>
  counts.map(([status, count]) => `${count} ${status}`).join(', ')

/** The value of a field as text; empty where it has none. */
function fieldOf({ data }: Notification, field: string): string {
  const value = data[field] ?? ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** `schedule nightly FAILED on web1 (1 of 3 hosts)`: which task ended how, and where. */
function endOfTask(notification: Notification): string {
  const said = (field: string) => fieldOf(notification, field)
  const counts = Object.entries((notification.data['counts'] ?? {}) as Record<string, number>)
  const script = said('script') === '' ? '' : ` (${said('script')})`
  const what =
    said('scheduleId') === ''
      ? `task ${said('taskId')}${script} of ${said('createdBy')}`
      : `schedule ${said('schedule') || said('scheduleId')}`
  // A delivery that an older server wrote has no nodes.
  if (said('status') !== 'FAILED' || notification.data['nodes'] === undefined)
    return `${what} ${said('status')} (${countsText(counts)})`
  const others = counts.filter(([each]) => each !== 'SUCCESS')
  const kinds = others.every(([each]) => each === 'FAILED') ? '' : `: ${countsText(others)}`
  const where = said('nodes') === '' ? '' : ` on ${shortened(said('nodes'), longestNodes)}`
  const hosts = said('hostCount') === '1' ? 'host' : 'hosts'
  return `${what} FAILED${where} (${said('count')} of ${said('hostCount')} ${hosts}${kinds})`
}

/** An event in a line for people. */
function sentence(notification: Notification): string {
  const said = (field: string) => fieldOf(notification, field)
  const hosts =
    said('count') === '1' ? `host ${said('nodes')} is` : `${said('count')} hosts ${said('nodes')} are`
  switch (notification.type) {
    case 'task.failed':
    case 'task.ended':
      return endOfTask(notification)
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
      return notification.type
  }
}

/** The text, and behind it the URL, or the command that shows the task of a schedule; chats get the URL as it is. */
function textOf(notification: Notification): { text: string; link: string } {
  const { url, scheduleId } = notification.data
  const taskId = fieldOf(notification, 'taskId')
  const command = taskId !== '' && typeof scheduleId === 'number' ? `: rsm tasks show ${taskId}` : ''
  const link = typeof url === 'string' ? url.slice(0, longestText / 2) : ''
  const text = shortened(`rsm: ${sentence(notification)}`, longestText - link.length - command.length)
  return link === '' ? { text: text + command, link } : { text: `${text}: `, link }
}

/** Nothing in it is a mention or a link (docs.slack.dev, "Escaping text"). */
const forSlack = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const forDiscord = (text: string) => text.replaceAll(/[\\`*_~|[\]()<>#]/g, '\\$&')

/** The same bytes for every try. */
export function bodyOf(format: WebhookFormat, notification: Notification): string {
  const { type, at, data } = notification
  if (format === 'JSON') return JSON.stringify({ type, timestamp: at, data })
  const { text, link } = textOf(notification)
  switch (format) {
    case 'SLACK':
      return JSON.stringify({ text: forSlack(text + link) })
    case 'DISCORD':
      return JSON.stringify({
        content: forDiscord(text).slice(0, 2_000 - link.length) + link,
        allowed_mentions: { parse: [] },
      })
    case 'TEAMS': {
      const run = { type: 'TextRun', text }
      const linkRun = { type: 'TextRun', text: link, selectAction: { type: 'Action.OpenUrl', url: link } }
      return JSON.stringify({
        type: 'message',
        attachments: [
          {
            contentType: 'application/vnd.microsoft.card.adaptive',
            content: {
              type: 'AdaptiveCard',
              version: '1.2',
              // No Markdown in a run of text, and no link that is not an action.
              body: [{ type: 'RichTextBlock', inlines: link === '' ? [run] : [run, linkRun] }],
            },
          },
        ],
      })
    }
  }
}
