import { string } from '@oclif/core/flags'
import type { WebhookPatch } from '../../core/protocol/http/webhooks.ts'
import { webhookEvents, webhookFormats } from '../../core/webhooks/webhook.ts'
import { readNamedFile } from '../input/named-file.ts'
import type { FlagsOf } from './given.ts'
import { given, ifGiven } from './given.ts'
import { listed } from './repeated.ts'

/** What a webhook is told, and how. Its secret is never an argument, which all users of the machine could read. */
export const webhookFlags = {
  event: string({
    ...listed,
    options: [...webhookEvents],
    description: 'event to send; may repeat, or be a list with commas',
  }),
  selector: string({
    char: 'w',
    helpValue: 'SELECTOR',
    description: 'only events about hosts that this selector matches',
  }),
  format: string({
    options: webhookFormats.map((format) => format.toLowerCase()),
    description: 'json (default), or the text format of a chat',
  }),
  'secret-file': string({
    helpValue: 'FILE',
    description: 'file with the secret that signs, whsec_ and base64; made by the server by default',
  }),
}

export function readWebhook(
  flags: FlagsOf<typeof webhookFlags>,
): Pick<WebhookPatch, 'events' | 'format'> & { selector?: string; secret?: string } {
  return given({
    events: flags.event as WebhookPatch['events'],
    selector: flags.selector,
    format: flags.format?.toUpperCase() as Exclude<WebhookPatch['format'], null>,
    secret: ifGiven(flags['secret-file'], (file) => readNamedFile(file, '--secret-file').trim()),
  })
}
