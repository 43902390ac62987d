import { string } from '@oclif/core/flags'
import { type AuditFilter, type AuditOutcome, auditOutcomes } from '../../core/audit.ts'
import { parseDuration, parseTime } from '../input/values.ts'
import { type FlagsOf, given, ifGiven } from './checks.ts'

export const auditFlags = {
  action: string({
    helpValue: 'ACTION',
    description: 'only entries with this action, like task.create',
  }),
  actor: string({ helpValue: 'NAME', description: 'only entries of this user or agent' }),
  object: string({
    helpValue: 'TYPE[:ID]',
    description: 'only entries about this object, like host:17',
  }),
  outcome: string({
    options: [...auditOutcomes],
    description: 'only entries with this outcome',
  }),
  since: string({
    helpValue: 'TIME',
    description: "only entries since this time: 2h, 3d, '2026-11-21 08:00'",
  }),
  until: string({ helpValue: 'TIME', description: 'only entries until this time, in the same forms' }),
}

function momentOf(option: string, text: string, utc: boolean): string {
  if (/^\d{4}-/.test(text)) return parseTime(option, text, utc)
  return new Date(Math.max(0, Date.now() - parseDuration(text) * 1000)).toISOString()
}

/** Reads the filter flags; times without a zone are local, or UTC with `--utc`. Errors: `Misuse`. */
export function auditFilter(flags: FlagsOf<typeof auditFlags> & { readonly utc: boolean }): AuditFilter {
  const { action, actor, object, outcome, utc } = flags
  const [objectType, ...id] = object?.split(':') ?? []
  return given({
    action,
    actor,
    outcome: outcome as AuditOutcome | undefined,
    from: ifGiven(flags.since, (text) => momentOf('--since', text, utc)),
    to: ifGiven(flags.until, (text) => momentOf('--until', text, utc)),
    objectType,
    objectId: id.length > 0 ? id.join(':') : undefined,
  })
}
