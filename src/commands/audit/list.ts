import { integer, string } from '@oclif/core/flags'
import { allEntries } from '../../client/services/audit.ts'
import type { AuditEntry, AuditQuery } from '../../core/protocol/http/audit.ts'
import { auditOutcomes } from '../../core/protocol/http/audit.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { parseDuration, parseTime } from '../../ui/input/values.ts'
import { counted } from '../../ui/text/counted.ts'
import { showTime } from '../../ui/text/time.ts'
import { toneOf } from '../../ui/text/tones.ts'

/** So long ago, or that time. */
function momentOf(option: string, text: string, utc: boolean): string {
  if (/^\d{4}-/.test(text)) return parseTime(option, text, utc)
  return new Date(Math.max(0, Date.now() - parseDuration(text) * 1000)).toISOString()
}

function objectOf({ object }: AuditEntry): string | null {
  if (object === null) return null
  const what = object.name ?? object.id
  return what === null ? object.type : `${object.type} ${what}`
}

/** Of what is known about it, what one looks for; all of it is in `--json`. */
const telling: readonly (readonly [key: string, before: string])[] = [
  ['selector', ''],
  ['scriptName', 'script '],
  ['runAs', 'as '],
  ['role', ''],
  ['rights', 'may '],
  ['hostname', ''],
  ['changed', 'changed '],
  ['maxUses', 'uses '],
  ['force', 'force '],
  ['retryOf', 'retry of '],
]

function whatOf({ detail, outcome }: AuditEntry): string {
  const told = telling.flatMap(([key, before]) => {
    const value = detail[key] ?? null
    if (value === null || value === '') return []
    return [before + (Array.isArray(value) ? value.join(', ') : String(value))]
  })
  const { hostCount = null, message = null } = detail
  if (typeof hostCount === 'number') told.push(counted(hostCount, 'host'))
  if (outcome !== 'SUCCESS' && message !== null) told.push(String(message))
  return told.join(', ')
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
    action: string({ helpValue: 'ACTION', description: 'only this action, like task.create or user.login' }),
    actor: string({ helpValue: 'NAME', description: 'only what this user or agent did' }),
    object: string({
      helpValue: 'TYPE[:ID]',
      description: 'only what was done to this object, like host:17',
    }),
    outcome: string({
      options: [...auditOutcomes],
      description: 'only with this outcome',
    }),
    since: string({ helpValue: 'TIME', description: "only entries since then: 2h, 3d, '2026-11-21 08:00'" }),
    until: string({ helpValue: 'TIME', description: 'only entries until then, in the same forms' }),
    limit: integer({ min: 1, helpValue: 'N', description: 'show at most N' }),
  }

  async run() {
    const { flags } = await this.parse(AuditList)
    this.globals = flags
    const query: AuditQuery = {}
    if (flags.action !== undefined) query.action = flags.action
    if (flags.actor !== undefined) query.actor = flags.actor
    if (flags.outcome !== undefined) query.outcome = flags.outcome as NonNullable<AuditQuery['outcome']>
    if (flags.since !== undefined) query.from = momentOf('--since', flags.since, flags.utc)
    if (flags.until !== undefined) query.to = momentOf('--until', flags.until, flags.utc)
    const [type, ...id] = flags.object?.split(':') ?? []
    if (type !== undefined) query.objectType = type
    if (id.length > 0) query.objectId = id.join(':')
    const client = await this.client()
    const page = await allEntries((paging) => client.audit.list(paging), query, flags.limit)
    if (!this.globals.json && page.content.length > 0) {
      const { renderTable } = await import('../../ui/text/table.ts')
      await this.printLong(
        renderTable(page.content, [
          { heading: 'ID', value: (entry) => entry.id, keep: true },
          { heading: 'TIME', value: (entry) => showTime(entry.at, flags.utc) },
          { heading: 'ACTOR', value: ({ actor }) => actor.name ?? actor.type },
          { heading: 'IP', value: (entry) => entry.ip },
          { heading: 'ACTION', value: (entry) => entry.action },
          { heading: 'OBJECT', value: objectOf },
          { heading: 'OUTCOME', value: (entry) => entry.outcome, tone: (entry) => toneOf(entry.outcome) },
          { heading: 'WHAT', value: whatOf },
        ]),
      )
    }
    if (page.totalElements === 0) this.notice('no such entries')
    this.saidCut(page, 'entries')
    return page
  }
}
