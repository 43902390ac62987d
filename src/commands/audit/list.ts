import { string } from '@oclif/core/flags'
import { allEntries } from '../../client/services/audit.ts'
import { type AuditEntry, auditOutcomes } from '../../core/audit.ts'
import type { AuditQuery } from '../../core/protocol/http/audit.ts'
import { BaseCommand } from '../../ui/command/base-command.ts'
import { limitFlag, showList } from '../../ui/command/list.ts'
import { given, ifGiven } from '../../ui/flags/given.ts'
import { parseDuration, parseTime } from '../../ui/input/values.ts'
import { counted } from '../../ui/text/counted.ts'
import { showTime } from '../../ui/text/time.ts'
import { toneOf } from '../../ui/text/tones.ts'

/** `2h` ago, or a point in time. */
function momentOf(option: string, text: string, utc: boolean): string {
  if (/^\d{4}-/.test(text)) return parseTime(option, text, utc)
  return new Date(Math.max(0, Date.now() - parseDuration(text) * 1000)).toISOString()
}

function objectOf({ object }: AuditEntry): string | null {
  if (object === null) return null
  const what = object.name ?? object.id
  return what === null ? object.type : `${object.type} ${what}`
}

/** The details that people look for; `--json` has all of them. */
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
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(AuditList)
    const { action, actor, object, outcome, utc } = flags
    const [objectType, ...id] = object?.split(':') ?? []
    const query: AuditQuery = given({
      action,
      actor,
      outcome: outcome as AuditQuery['outcome'],
      from: ifGiven(flags.since, (text) => momentOf('--since', text, utc)),
      to: ifGiven(flags.until, (text) => momentOf('--until', text, utc)),
      objectType,
      objectId: id.length > 0 ? id.join(':') : undefined,
    })
    const client = await this.client()
    const page = await allEntries((paging) => client.audit.list(paging), query, flags.limit)
    await showList(this, page, {
      noun: 'entries',
      filtered: true,
      none: '',
      columns: [
        { heading: 'ID', value: (entry) => entry.id, keep: true },
        { heading: 'TIME', value: (entry) => showTime(entry.at, utc) },
        { heading: 'ACTOR', value: ({ actor }) => actor.name ?? actor.type },
        { heading: 'IP', value: (entry) => entry.ip },
        { heading: 'ACTION', value: (entry) => entry.action },
        { heading: 'OBJECT', value: objectOf },
        { heading: 'OUTCOME', value: (entry) => entry.outcome, tone: (entry) => toneOf(entry.outcome) },
        { heading: 'WHAT', value: whatOf },
      ],
    })
    return page
  }
}
