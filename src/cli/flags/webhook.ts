import { string } from '@oclif/core/flags'
import type { WebhookPatch } from '../../core/protocol/http/webhooks.ts'
import { type WebhookFilter, webhookEvents, webhookFormats } from '../../core/webhooks/webhook.ts'
import { readNamedFile } from '../input/named-path.ts'
import { type FlagsOf, given, ifGiven, listed } from './checks.ts'

/** The secret is never an argument, because every user of the machine can read those. */
export const webhookFlags = {
  event: string({
    ...listed,
    options: [...webhookEvents],
    description: 'event to send; may be repeated, or a list with commas',
  }),
  selector: string({
    char: 'w',
    helpValue: 'SELECTOR',
    description: 'only events about hosts that this selector matches',
  }),
  schedule: string({
    helpValue: 'NAME',
    description: "only events of this schedule; '*' for any schedule",
  }),
  script: string({ helpValue: 'NAME', description: 'only events of this stored script' }),
  'created-by': string({
    aliases: ['by'],
    helpValue: 'USER',
    description: 'only tasks and schedules of this user',
  }),
  format: string({
    options: webhookFormats.map((format) => format.toLowerCase()),
    description: 'json (default), or the text format of a chat',
  }),
  'secret-file': string({
    helpValue: 'FILE',
    description: 'file with the signing secret (default: generated)',
  }),
}

export function readWebhook(flags: FlagsOf<typeof webhookFlags>): Pick<WebhookPatch, 'events' | 'format'> & {
  secret?: string
} & {
  [F in 'selector' | WebhookFilter]?: string
} {
  return given({
    events: flags.event as WebhookPatch['events'],
    selector: flags.selector,
    schedule: flags.schedule,
    script: flags.script,
    createdBy: flags['created-by'],
    format: flags.format?.toUpperCase() as Exclude<WebhookPatch['format'], null>,
    secret: ifGiven(flags['secret-file'], (file) => readNamedFile(file, '--secret-file').trim()),
  })
}
