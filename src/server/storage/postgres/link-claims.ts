import type { LinkClaim, Member } from '../ports/cluster.ts'
import type { Database } from './connection/database.ts'
import { isLiving } from './ownership/lives.ts'

/** Replacements within `window` that indicate two agents with one identity; new claims are then refused for `refusal` (P13). */
const tooMany = 3
const window = `interval '1 minute'`
const refusal = `interval '5 minutes'`

/** Claim of a host's link by a server, for an agent. */
export interface Wanted {
  readonly hostId: number
  readonly agentId: string
  readonly server: Member
}

export interface Answer {
  /** Null if the claim was refused. */
  readonly claim: LinkClaim | null
  readonly isDuplicate: boolean
  /** Whether a server, possibly this one, held the link. */
  readonly isReplacement: boolean
  /** Milliseconds for which new claims are refused while a server holds the link. */
  readonly refusedFor: number
  /** Whether the server is a member; if so, a null claim is a refusal. */
  readonly isMember: boolean
}

interface Row {
  host_id: number
  is_member: boolean
  epoch: number | null
  since: string | null
  is_duplicate: boolean | null
  is_replacement: boolean | null
  refused_for: number | null
}

/** SQL: replacements within `window`. */
const recent = `array(select time from unnest(l.replaced_at) time where time > excluded.since - ${window})`
const isOneTooMany = `cardinality(${recent}) >= ${tooMany - 1}`
/** Agents of a dead server reconnect all at once, which is not a fight for a link. */
const hasHolder = isLiving('l', { epoch: 'server_epoch' })

/**
 * Draws the epoch while the row is locked, so that the later of two claims has the higher one. Waits for
 * writes for the previous link, which lock the row as well.
 */
const claims = {
  name: 'links.claim',
  text: `with wanted as (
      select w.*, exists (select from rsm.servers s where s.name = w.server and s.epoch = w.server_epoch) as is_member
      from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) w(host_id, agent_id, server, server_epoch)),
    claimed as (
      insert into rsm.links as l (host_id, agent_id, server, server_epoch, epoch, since)
      select w.host_id, w.agent_id, w.server, w.server_epoch, nextval('rsm.epochs'), now.time
      from wanted w, (select rsm.now() as time offset 0) now where w.is_member order by w.host_id
      on conflict (host_id) do update set agent_id = excluded.agent_id, server = excluded.server,
        server_epoch = excluded.server_epoch, epoch = nextval('rsm.epochs'), since = excluded.since, ready = false,
        replaced_at = case when not ${hasHolder} then l.replaced_at when ${isOneTooMany} then '{}'
          else ${recent} || excluded.since end,
        refused_until = case when ${hasHolder} and ${isOneTooMany} then excluded.since + ${refusal} else l.refused_until end
      where l.refused_until is null or l.refused_until <= excluded.since or not ${hasHolder}
      returning l.*)
    select w.host_id, w.is_member, c.epoch, c.since, c.refused_until = c.since + ${refusal} as is_duplicate,
      c.replaced_at[cardinality(c.replaced_at)] = c.since as is_replacement,
      (extract(epoch from coalesce(c.refused_until, l.refused_until) - rsm.now()) * 1000)::float8 as refused_for
    from wanted w left join claimed c on c.host_id = w.host_id left join rsm.links l on l.host_id = w.host_id`,
}

/** Claims links of distinct hosts; returns answers in the same order. */
async function claimEach(database: Database, wanted: readonly Wanted[]): Promise<Answer[]> {
  const rows = await database.ask<Row>('write', claims, [
    wanted.map(({ hostId }) => hostId),
    wanted.map(({ agentId }) => agentId),
    wanted.map(({ server }) => server.name),
    wanted.map(({ server }) => server.epoch),
  ])
  const byHost = new Map(rows.map((row) => [row.host_id, row]))
  return wanted.map(({ hostId, agentId, server }) => {
    const row = byHost.get(hostId)
    const { epoch = null, since = null } = row ?? {}
    return {
      claim: epoch === null || since === null ? null : { hostId, agentId, server, epoch, since },
      isDuplicate: row?.is_duplicate === true,
      isReplacement: row?.is_replacement === true || row?.is_duplicate === true,
      refusedFor: Math.max(0, row?.refused_for ?? 0),
      isMember: row?.is_member === true,
    }
  })
}

/** Claims links in order; claims of one host run one after the other, because each replaces the previous one. */
export async function claimAll(database: Database, wanted: readonly Wanted[]): Promise<Answer[]> {
  const answers: Answer[] = []
  let left = wanted.map((want, at) => ({ want, at }))
  while (left.length > 0) {
    const first = new Map<number, (typeof left)[number]>()
    for (const one of left) if (!first.has(one.want.hostId)) first.set(one.want.hostId, one)
    const round = [...first.values()]
    const answered = await claimEach(
      database,
      round.map(({ want }) => want),
    )
    for (const [at, answer] of answered.entries()) answers[round[at]?.at ?? 0] = answer
    const done = new Set(round)
    left = left.filter((one) => !done.has(one))
  }
  return answers
}
