import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { auditFilter, auditFlags } from '../../cli/flags/audit.ts'
import { counted } from '../../cli/text/amounts.ts'
import { toneOf } from '../../cli/text/screen.ts'
import { timeColumn } from '../../cli/text/time.ts'
import { allEntries } from '../../client/services/audit.ts'
import type { AuditEntry } from '../../core/audit.ts'

/** Id of a task, file or session without a name; commands accept its last characters. */
const opaqueId = /\b[0-9A-Z]{20}([0-9A-Z]{6})$/

function objectOf({ object }: AuditEntry): string | null {
  if (object === null) return null
  const name = object.name ?? object.id
  return name === null ? object.type : `${object.type} ${name}`
}

/** Details shown, each with a prefix; `--json` has all details. */
const shownDetails: readonly (readonly [key: string, before: string])[] = [
  ['firstLine', ''],
  ['command', ''],
  ['scriptName', 'script '],
  ['selector', 'on '],
  ['hosts', 'on '],
  ['clusters', 'on cluster '],
  ['all', ''],
  ['tags', 'tagged '],
  ['exclude', 'except '],
  ['runAs', 'as '],
  ['role', ''],
  ['rights', 'may '],
  ['hostname', ''],
  ['changed', 'changed '],
  ['maxUses', 'uses '],
  ['force', 'force '],
  ['retryOf', 'retry of '],
  ['path', 'path '],
  ['fileName', 'file '],
  ['verifyFirstLine', 'verify '],
  ['rollbackFirstLine', 'rollback '],
]

function detailsOf({ detail, outcome }: AuditEntry): string {
  const parts = shownDetails.flatMap(([key, before]) => {
    const value = detail[key] ?? null
    // The first line of a copy contains its path.
    if (value === null || value === '' || (key === 'path' && 'firstLine' in detail)) return []
    if (key === 'all') return value === true ? ['on all hosts'] : []
    return [before + (Array.isArray(value) ? value.join(', ') : String(value))]
  })
  const { hostCount = null, message = null } = detail
  if (typeof hostCount === 'number') parts.push(counted(hostCount, 'host'))
  if (outcome !== 'SUCCESS' && message !== null) parts.push(String(message))
  return parts.join(', ')
}

export default class AuditList extends BaseCommand {
  static override summary = 'List the audit log, newest first (for administrators)'
  static override examples = [
    '$ rsm audit list --limit 20',
    '$ rsm audit list --action user.login --outcome REFUSED --since 2h',
    '$ rsm audit list --object host:17',
    "$ rsm audit list --since '2026-11-20 22:00' --until '2026-11-21 06:00'",
  ]
  static override flags = {
    ...auditFlags,
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(AuditList)
    const client = await this.client()
    const { utc } = flags
    const page = await allEntries((paging) => client.audit.list(paging), auditFilter(flags), flags.limit)
    return showList(this, page, {
      noun: 'entries',
      filtered: true,
      none: '',
      columns: [
        { heading: 'ID', value: (entry) => entry.id, essential: true },
        { ...timeColumn('TIME', ({ at }) => at, utc), essential: true },
        { heading: 'ACTOR', value: ({ actor }) => actor.name ?? actor.type },
        { heading: 'IP', value: (entry) => entry.ip, spare: true },
        { heading: 'ACTION', value: (entry) => entry.action, essential: true },
        {
          heading: 'OBJECT',
          value: objectOf,
          short: (entry) => objectOf(entry)?.replace(opaqueId, '$1') ?? null,
        },
        { heading: 'OUTCOME', value: (entry) => entry.outcome, tone: (entry) => toneOf(entry.outcome) },
        { heading: 'WHAT', value: detailsOf },
      ],
    })
  }
}
