import type { WebhookEvent, WebhookFilter, WebhookFormat } from '../../core/webhooks/webhook.ts'

/** When each event comes. */
export const eventsSaid: Record<WebhookEvent, string> = {
  'task.failed': 'A task has ended FAILED',
  'task.ended': 'A task has ended, with any result',
  'schedule.suspended': 'A schedule no longer runs',
  'schedule.skipped': 'A slot was not run, or its task could not be started',
  'host.offline': 'Hosts have been OFFLINE or NO LINK for a minute',
  'host.online': 'Hosts that were reported offline are back',
  'agent.revoked': 'The token of a host’s agent was revoked',
  'server.restore': 'A backup was restored; pending work is held',
}

export const filtersSaid: Record<WebhookFilter, { label: string; hint: string }> = {
  schedule: {
    label: 'Schedule',
    hint: 'Only events of this schedule; * for any schedule; empty: all events',
  },
  script: { label: 'Script', hint: 'Only events of this stored script' },
  createdBy: {
    label: 'Created by',
    hint: 'Only tasks that this user started, and schedules that this user owns',
  },
}

export const formatsSaid: Record<WebhookFormat, string> = {
  JSON: 'JSON, as Standard Webhooks says',
  SLACK: 'A text for Slack',
  TEAMS: 'A text for Teams',
  DISCORD: 'A text for Discord',
}
