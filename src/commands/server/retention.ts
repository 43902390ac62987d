import { boolean } from '@oclif/core/flags'
import { LocalCommand } from '../../cli/command/base-command.ts'
import { controlOr } from '../../cli/command/control.ts'
import { dataDirectory, retentionFlags, serverDirectoryFlag } from '../../cli/flags/service.ts'
import { confirm } from '../../cli/input/prompt.ts'
import { parseBytes } from '../../cli/input/values.ts'
import { counted, showBytes } from '../../cli/text/amounts.ts'
import { RsmError } from '../../core/errors.ts'
import type { OldData } from '../../core/protocol/control.ts'

/** A line for each kind of data to remove, then for the data kept. */
function lines({ byAge, bySize, terminals, kept, ...limits }: OldData): string[] {
  const { taskRetention, recordingRetention, maxOutputBytes } = limits
  const gone: string[] = []
  if (byAge.tasks > 0)
    gone.push(
      `${counted(byAge.tasks, 'task')} older than ${taskRetention} days, ${showBytes(byAge.bytes)} of output`,
    )
  if (bySize.tasks > 0)
    gone.push(
      `${counted(bySize.tasks, 'task')}, the oldest, ${showBytes(bySize.bytes)} of output, over the limit of ${showBytes(maxOutputBytes)}`,
    )
  if (terminals.sessions > 0)
    gone.push(
      `${counted(terminals.sessions, 'terminal session')} older than ${recordingRetention} days, ${showBytes(terminals.bytes)} of recordings`,
    )
  if (gone.length === 0) gone.push('nothing is past its retention')
  return [...gone, `kept: ${counted(kept.tasks, 'task')}, ${showBytes(kept.bytes)} of output`]
}

const isEmpty = ({ byAge, bySize, terminals }: OldData) =>
  byAge.tasks + bySize.tasks + terminals.sessions === 0

export default class ServerRetention extends LocalCommand {
  static override summary = 'Show what is past its retention, and delete it'
  static override description =
    'A server does this automatically every hour. This command shows what is due and asks before it deletes ' +
    "it. Run it on the server's machine, as its user or root; it needs no token. A running server uses its own " +
    'settings; without one, the flags of this command apply.'
  static override examples = [
    '$ rsm server retention --dry-run',
    '$ rsm server retention --yes --data-dir /var/lib/rsm/server',
  ]
  static override flags = {
    'dry-run': boolean({ description: 'only show what would be removed' }),
    yes: boolean({ char: 'y', description: 'do not ask' }),
    ...retentionFlags,
    'data-dir': serverDirectoryFlag,
  }

  async run() {
    const { flags } = await this.parse(ServerRetention)
    const dataDir = dataDirectory('server', flags['data-dir'])
    const limits = {
      taskRetention: flags['task-retention'],
      recordingRetention: flags['recording-retention'],
      maxOutputBytes: parseBytes('--max-output-bytes', flags['max-output-bytes']),
    }
    const retain = (dryRun: boolean) =>
      controlOr(dataDir, 'retention', { dryRun }, async (path) => {
        const { retentionOffline } = await import('../../server/app/offline.ts')
        return retentionOffline(path, limits, dryRun)
      })
    const old = await retain(true)
    this.print(lines(old).join('\n'))
    if (flags['dry-run'] || isEmpty(old)) return old
    if (!flags.yes && !(await confirm('Remove this?', 'use --yes to remove it')))
      throw new RsmError('interrupted', 'nothing was removed')
    const removed = await retain(false)
    this.done('removed')
    return removed
  }
}
