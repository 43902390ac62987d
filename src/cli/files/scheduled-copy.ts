import { string } from '@oclif/core/flags'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { ScheduleCreate } from '../../core/protocol/http/schedules.ts'
import type { BaseCommand } from '../command/base-command.ts'
import type { FlagsOf } from '../flags/checks.ts'
import { copyFlags } from '../flags/copy.ts'
import type { StdinReader } from '../input/stdin.ts'
import { openScriptStdin } from './send.ts'
import { toHosts } from './to-hosts.ts'

const { recursive, mode, owner, backup, secret, 'limit-rate': limitRate } = copyFlags
const helpGroup = 'COPY'
const ofCopy = { dependsOn: ['copy'] }

/** A schedule's copy, in place of a script (contract §14). */
export const scheduledCopyFlags = {
  copy: string({
    helpGroup,
    helpValue: 'FILE',
    exclusive: ['script'],
    description: 'copy this file to the hosts, as it is now',
  }),
  to: string({
    helpGroup,
    helpValue: 'PATH',
    ...ofCopy,
    description: 'path on the hosts, as in rsm cp',
  }),
  recursive: { ...recursive, ...ofCopy },
  mode: { ...mode, ...ofCopy },
  owner: { ...owner, ...ofCopy },
  backup: { ...backup, ...ofCopy },
  secret: { ...secret, ...ofCopy, description: 'keep the file encrypted on the server' },
  'limit-rate': limitRate,
}

/** Null without `--copy`. Checks local files; the returned function uploads. Errors: `usage`, `invalid`. */
export async function readScheduledCopy(
  command: BaseCommand,
  client: () => Promise<Client>,
  flags: FlagsOf<typeof scheduledCopyFlags> & { readonly command: string | undefined },
  stdin: StdinReader,
): Promise<(() => Promise<Pick<ScheduleCreate, 'copy'>>) | null> {
  const { copy, to } = flags
  if (copy === undefined) return null
  if (flags.command !== undefined)
    throw new RsmError('usage', `either --copy or a command, not both: ${flags.command}`)
  if (to === undefined) throw new RsmError('usage', 'missing --to', { hint: `--copy ${copy} --to /PATH` })
  const how = { ...flags, follow: false, 'dry-run': false, diff: false }
  const { prepare, close } = await toHosts(
    command,
    client,
    { sources: [copy], to: { selector: '', path: to } },
    how,
    stdin,
  )
  return async () => {
    try {
      return await prepare(1)
    } finally {
      await close?.()
    }
  }
}

/** Reads `--stdin` in the same way; null without it. Errors: `usage`. */
export async function readScheduledStdin(
  command: BaseCommand,
  path: string | undefined,
  stdin: StdinReader,
): Promise<((client: Client) => Promise<Pick<ScheduleCreate, 'stdin'>>) | null> {
  if (path === undefined) return null
  const { bring, close } = await openScriptStdin(command, path, stdin)
  return async (client) => {
    try {
      return await bring(client)
    } finally {
      await close()
    }
  }
}
