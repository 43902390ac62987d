import { doubtSentence } from '../../core/clock-doubt.ts'
import type { ProcessStatus } from '../../core/protocol/control.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { control } from '../../ui/command/control.ts'
import { dataDirectory, serverDirectoryFlag } from '../../ui/command/directories.ts'
import { counted } from '../../ui/text/counted.ts'
import { showTime } from '../../ui/text/time.ts'

const held = ({ executions, tasks, reason }: NonNullable<ProcessStatus['restore']>) =>
  `holds ${counted(executions, 'execution')} of ${counted(tasks, 'task')}: ${reason}`

function copied(copy: ProcessStatus['auditCopy']): string | null {
  if (copy == null) return null
  const { target, waiting, behindSeconds, error } = copy
  const lag = waiting === 0 ? 'up to date' : `${waiting} entries behind, for ${behindSeconds} s`
  return `${target}: ${lag}${error === null ? '' : `: ${error}`}`
}

export default class ServerStatus extends BaseCommand {
  static override summary = 'Show how the server on this machine is'
  static override description =
    'Run it as the user of the server or root; it needs no token. Exit code 4 where no server runs.'
  static override examples = ['$ rsm server status', '$ rsm server status --json']
  static override flags = { 'data-dir': serverDirectoryFlag }

  async run() {
    const { flags } = await this.parse(ServerStatus)
    const status = await control(dataDirectory('server', flags['data-dir']), 'status', {})
    if (this.globals.json) return status
    const { restore, clock } = status
    const { renderFields } = await import('../../ui/text/table.ts')
    this.print(
      renderFields({
        version: status.version,
        pid: status.pid,
        started: showTime(status.startedAt, flags.utc),
        time: showTime(status.serverTime, flags.utc),
        hosts: status.hosts,
        'running tasks': status.runningTasks,
        'open terminals': status.terminals,
        writes: status.readOnly ?? 'are taken',
        'audit log': status.auditRefused ?? 'takes entries',
        'audit copy': copied(status.auditCopy),
        restore: restore === null ? null : held(restore),
        clock: clock === null ? null : doubtSentence(clock),
        'log level': status.logLevel,
      }),
    )
    return status
  }
}
