import { faultPoint } from '#fault-point'
import { sentPart } from '../../executions/transitions.ts'
import { fitJson } from '../../fit-json.ts'
import type { Execution, Offer, RunningExecution } from '../../seams/executions.ts'
import type { LinkClaim } from '../../seams/links.ts'
import { batched } from '../connection/batched.ts'
import { Doubtful } from './doubtful.ts'
import { columns, keyOf, type Row, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'

/** Hosts of one statement. */
const mostHosts = 2000

/** Rows of these links that are still the newest of their hosts, locked until the commit. */
const links = `link as materialized (
    select l.host_id from rsm.links l join input i on l.host_id = i.h and l.epoch = i.e where l.server is not null
    order by l.host_id for share of l)`

/** What is due for each host, in the order of its turns, as far as there is room beside what is RUNNING. */
const takeText = `with input as materialized (
    select * from jsonb_to_recordset($1::jsonb) as i(h bigint, e bigint, c int, p jsonb)),
  ${links},
  stopped as materialized (select task_id from rsm.held union all select task_id from rsm.cancels),
  chosen as materialized (
    select d.task_id, d.host_id, i.e, i.p from input i join link l on l.host_id = i.h cross join lateral (
      select x.task_id, x.host_id from rsm.executions x
      where x.host_id = i.h and x.status = 'PENDING' and x.due_at is not null and not x.over_ssh
        and x.task_id <> all (array(select task_id from stopped))
      order by x.due_at, x.task_id
      limit greatest(0, i.c - (select count(*) from rsm.executions r
        where r.host_id = i.h and r.status = 'RUNNING' and not r.over_ssh))) d
    order by d.task_id, d.host_id)
  update rsm.executions e
  set rec = e.rec || c.p, epoch = c.e, rev = e.rev + 1, xid = pg_current_xact_id()
  from chosen c where e.task_id = c.task_id and e.host_id = c.host_id and e.status = 'PENDING'
  returning ${columns}`

/** What was marked for a link before its answer was lost. */
const markedText = `select ${columns} from unnest($1::bigint[], $2::bigint[]) as i(h, epoch)
  join rsm.executions e on e.host_id = i.h and e.status = 'RUNNING' and not e.over_ssh and e.epoch = i.epoch`

/** The record stays as it is: only whose it is changes. */
const takeOverText = `with input as materialized (
    select * from jsonb_to_recordset($1::jsonb) as i(h bigint, e bigint, x jsonb)),
  ${links}
  update rsm.executions e set epoch = i.e
  from input i join link l on l.host_id = i.h
  where e.host_id = i.h and e.status = 'RUNNING' and not e.over_ssh and not i.x ? e.task_id
  returning ${columns}`

const byTurn = (one: Execution, other: Execution) =>
  (one.dueAt ?? '') < (other.dueAt ?? '') || (one.dueAt === other.dueAt && one.id < other.id) ? -1 : 1

interface TakeOver {
  readonly claim: LinkClaim
  readonly except: ReadonlySet<string>
}

/** Of several for one host the newest. */
function newestOf<T extends { claim: LinkClaim }>(all: readonly T[]): T[] {
  const byHost = new Map<number, T>()
  for (const one of all) {
    const other = byHost.get(one.claim.hostId)
    if (!other || other.claim.epoch <= one.claim.epoch) byHost.set(one.claim.hostId, one)
  }
  return [...byHost.values()].sort((a, b) => a.claim.hostId - b.claim.hostId)
}

/** The rows of each host go to the first who has asked for it. */
function share<T>(
  asked: readonly (readonly number[])[],
  all: readonly T[],
  hostOf: (one: T) => number,
): T[][] {
  const places = new Map<number, number>()
  for (const [place, hostIds] of asked.entries())
    for (const hostId of hostIds) if (!places.has(hostId)) places.set(hostId, place)
  const shares = asked.map((): T[] => [])
  for (const one of all) shares[places.get(hostOf(one)) ?? 0]?.push(one)
  return shares
}

/** What links of this server take, and take over. */
export function createTaking(steps: Steps) {
  const { database, clock } = steps.deps
  const doubtful = new Doubtful(clock)

  /** Of hosts with a statement whose answer was lost: what it has marked was never sent, for nobody knew. */
  async function neverTold(offers: readonly Offer[]): Promise<Row[]> {
    const asked = offers.filter(({ claim }) => doubtful.has(claim))
    if (asked.length === 0) return []
    const rows = await database.ask<Row>('write', { name: 'executions marked', text: markedText }, [
      asked.map(({ claim }) => claim.hostId),
      asked.map(({ claim }) => claim.epoch),
    ])
    for (const { claim } of asked) doubtful.looked(claim)
    return rows.filter(({ rec }) => !steps.inHand.get(rec.id))
  }

  async function mark(offers: readonly Offer[]): Promise<Row[]> {
    const at = steps.now()
    const input = offers.map(({ claim, capacity, agent }) => ({
      h: claim.hostId,
      e: claim.epoch,
      c: capacity,
      p: sentPart(at, agent),
    }))
    faultPoint('server.sent.before')
    try {
      return await database.ask<Row>('write', { name: 'executions take', text: takeText }, [fitJson(input)])
    } catch (error) {
      for (const { claim } of offers) doubtful.add(claim)
      throw error
    }
  }

  async function takeAll(asked: readonly (readonly Offer[])[]): Promise<Execution[][]> {
    const offers = newestOf(asked.flat())
    if (offers.length === 0) return asked.map(() => [])
    const found = await neverTold(offers)
    const stored = [...found, ...(await mark(offers))].map(storedOf)
    if (stored.length > 0) faultPoint('server.sent.after')
    for (const one of stored) steps.inHand.take(one)
    steps.tell.changed(stored.map((one) => ({ stored: one, hasMore: false })))
    const taken = stored.map(({ execution }) => execution).sort(byTurn)
    const hosts = asked.map((its) => its.map(({ claim }) => claim.hostId))
    return share(hosts, taken, ({ hostId }) => hostId)
  }

  async function takeOverAll(asked: readonly TakeOver[]): Promise<RunningExecution[][]> {
    const input = newestOf(asked).map(({ claim, except }) => ({
      h: claim.hostId,
      e: claim.epoch,
      x: [...except].map((id) => keyOf(id).taskId),
    }))
    const rows = await database.ask<Row>('write', { name: 'executions take over', text: takeOverText }, [
      fitJson(input),
    ])
    const stored = rows.map(storedOf)
    for (const one of stored) {
      const former = steps.inHand.get(one.execution.id)
      const own = steps.inHand.take(one)
      own.isReceived ||= former?.isReceived === true
      own.output.incomplete = former?.output.incomplete === true
    }
    return asked.map(({ claim }) =>
      stored.filter(({ epoch }) => epoch === claim.epoch).map((one) => steps.inHand.show(one)),
    )
  }

  return {
    doubtful,
    take: batched(takeAll, mostHosts, (offers) => offers.length),
    takeOver: batched(takeOverAll, mostHosts),
  }
}
