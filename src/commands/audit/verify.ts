import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { auditFile, checkAudit } from '../../client/services/audit.ts'
import { parseHead, showHead } from '../../core/audit.ts'
import { RsmError } from '../../core/errors.ts'

export default class AuditVerify extends BaseCommand {
  static override summary = 'Check whether the audit log was changed, and where'
  static override description =
    'A lost connection is resumed. With --head and a head noted earlier, it also detects that the end was cut ' +
    'off. This command prints the head, and the server writes it to its own log every hour ("auditHead").'
  static override examples = [
    '$ rsm audit verify',
    '$ rsm audit verify --head 57:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    '$ rsm audit verify --file /var/lib/rsm/server/audit/audit.log',
  ]
  static override flags = {
    file: string({
      helpValue: 'PATH',
      description: 'read this log or data directory instead of the server',
    }),
    head: string({ helpValue: 'ID:HASH', description: 'head noted earlier that the log must contain' }),
  }

  async run() {
    const { flags } = await this.parse(AuditVerify)
    const noted = flags.head === undefined ? null : parseHead(flags.head)
    if (noted === undefined)
      throw new RsmError('usage', `not a head: ${flags.head ?? ''}`, {
        hint: 'a head is ID:HASH, as this command and the log of the server show it',
      })
    const bytes = flags.file === undefined ? (await this.client()).audit.lines() : await auditFile(flags.file)
    const { entries, head, fault } = await checkAudit(bytes, noted)
    if (fault)
      throw new RsmError('conflict', `the audit log is not what was written: ${fault.sentence}`, {
        hint:
          entries === 0
            ? 'nothing before it is sound'
            : `sound up to there: ${entries} entries, head ${showHead(head)}`,
      })
    this.done(`the audit log is sound: ${entries} entries, head ${showHead(head)}`)
    return { entries, head: showHead(head) }
  }
}
