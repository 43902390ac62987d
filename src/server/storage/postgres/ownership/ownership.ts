import type { Log } from '../../../../disk/log.ts'
import {
  lease,
  type Member,
  type Ownership,
  type Peer,
  type ServerSeen,
  type Shared,
} from '../../ports/cluster.ts'
import type { Hints } from '../../ports/hints.ts'
import { type StoreClock, storeTime } from '../clock.ts'
import type { Ask, Database, Statement } from '../connection/database.ts'
import { openSession } from '../connection/session.ts'
import { type Present, refuseNewer } from '../schema/migrations.ts'
import { refuseClosed } from '../streams/closed.ts'
import { isLiving, lockLifeAgain, milliseconds, takeName, unlockLife } from './lives.ts'
import { createWatch } from './watch.ts'

export interface StoreOwnership extends Ownership {
  /** Live servers as of the last poll. */
  readonly neighbours: Neighbours
  /**
   * Whether the lease of a member of this process is valid, by the monotonic clock and from the start of its
   * last renewal. False for members of other processes.
   */
  holdsLease(member: Member): boolean
  /** Why others may consider this server dead, although its lease is valid; null if they do not. */
  readonly fault: string | null
  servers(): Promise<ServerSeen[]>
  listensAt: Shared['listensAt']
  peers(): Promise<Peer[]>
  close(): Promise<void>
}

/** Live servers, by the epochs of their lives. */
export interface Neighbours {
  /** Epoch of this server; null before it joins and after it leaves. */
  own(): number | null
  /** Epochs of the other live servers. */
  others(): ReadonlySet<number>
  /** Calls `listener` when the live servers change. Returns a function to unsubscribe. */
  changed(listener: () => void): () => void
}

interface Parts {
  database: Database
  hints: Hints
  clock: StoreClock
  log: Log
  version: string
}

interface Life {
  member: Member
  /** Monotonic milliseconds. */
  renewedAt: number
}

/** Milliseconds to wait for an answer: longer would leave no time to renew the lease over another connection. */
const patience = 3_000

const renewal = {
  name: 'servers.renew',
  text: `update rsm.servers set lease_until = rsm.now() + ${milliseconds('$3')}, address = $4, endpoint = $5 from rsm.cluster
    where name = $1 and epoch = $2 returning ${storeTime} as time, schema, oldest_server`,
}

const peers = {
  name: 'servers.peers',
  text: 'select name, epoch, endpoint from rsm.servers where endpoint is not null and lease_until > rsm.now()',
}

const listStatement = {
  name: 'servers.shown',
  text: `select s.name, s.version, s.joined_at as "startedAt", s.address, s.lease_until as "leaseUntil",
      s.lease_until > rsm.now() as "isLiving", coalesce(l.links, 0) as links, coalesce(t.tasks, 0) as tasks
    from rsm.servers s
    left join (select server, server_epoch, count(*) as links from rsm.links where server is not null group by 1, 2) l
      on l.server = s.name and l.server_epoch = s.epoch
    left join (select o.server, o.epoch, count(*) as tasks from rsm.task_owners o
      join rsm.tasks r on r.id = o.task_id and r.status = 'RUNNING' group by 1, 2) t
      on t.server = s.name and t.epoch = s.epoch
    order by s.name`,
}

/**
 * Servers as rows of rsm.servers. A server lives until its lease expires. If its process dies, its session
 * releases a lock, and others end the lease; only the lease of a lost machine runs out. Rules:
 * docs/inside/living-servers.md.
 */
export async function openOwnership({
  database,
  hints,
  clock,
  log,
  version,
}: Parts): Promise<StoreOwnership> {
  const lives = new Map<number, Life>()
  let address: string | null = null
  let endpoint: string | null = null

  async function renew(ask: Ask, { name, epoch }: Member): Promise<Present | undefined> {
    const asked = clock.monotonic()
    const [row] = await ask<Present & { time: number }>(renewal, [name, epoch, lease, address, endpoint])
    if (row) clock.learn(row.time, asked, clock.monotonic())
    const life = lives.get(epoch)
    if (!row) lives.delete(epoch)
    else if (life) life.renewedAt = asked
    return row
  }

  const session = await openSession({
    database,
    clock,
    log,
    patience,
    async begin(ask) {
      // Keepalives, so that PostgreSQL notices a lost machine.
      await ask('set tcp_keepalives_idle = 3; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3')
      for (const { member } of lives.values()) {
        await lockLifeAgain(ask, member)
        await renew(ask, member)
      }
    },
  })
  const watch = createWatch(session, hints, log)
  let others: ReadonlySet<number> = new Set()
  const updateOthers = () => {
    others = new Set([...watch.living()].filter((epoch) => !lives.has(epoch)))
  }
  watch.changed(updateOthers)
  await watch.poll()

  return {
    ...createTaskOwners(database),
    neighbours: {
      own: () => [...lives.keys()].at(-1) ?? null,
      others: () => others,
      changed: (listener) => watch.changed(listener),
    },
    get fault() {
      return session.age() > 0 ? null : 'the connection that holds the lock of this server is broken'
    },
    holdsLease({ epoch }) {
      const life = lives.get(epoch)
      return life !== undefined && clock.monotonic() - life.renewedAt < lease
    },
    async join(name) {
      for (const { member } of lives.values())
        if (member.name === name) {
          lives.delete(member.epoch)
          await unlockLife(session.ask, member)
        }
      const asked = clock.monotonic()
      const member = await takeName(session.ask, name, { version, address })
      await refuseClosed(session.ask, database.address)
      lives.set(member.epoch, { member, renewedAt: asked })
      await watch.poll()
      return member
    },
    async renew(member) {
      const present = await renew(session.ask, member)
      // The lease is renewed first, so that no server takes over tasks while this one hands them over.
      if (present) refuseNewer(database.address, present)
      return present !== undefined
    },
    renewedAt: ({ epoch }) => lives.get(epoch)?.renewedAt ?? null,
    async leave(member) {
      if (!lives.delete(member.epoch)) return
      const { name, epoch } = member
      try {
        await session.ask('delete from rsm.servers where name = $1 and epoch = $2', [name, epoch])
        await unlockLife(session.ask, member)
        hints.publish('server', { id: name })
      } catch (error) {
        log.warn({ err: error }, 'could not deregister this server: others notice when its lock is released')
      }
    },
    servers: () => database.ask<ServerSeen>('api', listStatement),
    async listensAt(at, sealed) {
      address = at
      endpoint = sealed
      try {
        for (const { member } of lives.values()) await renew(session.ask, member)
      } catch (error) {
        log.warn({ err: error }, 'the address of this server is not registered yet')
      }
    },
    peers: () => database.ask<Peer>('api', peers),
    async close() {
      await watch.close()
      await session.close()
    },
  }
}

/** Tasks taken per statement, so that several servers share those of a dead one. */
const takenAtOnce = 20

/** Finds tasks that this member owns or may take. */
const findStatement = {
  name: 'task-owners.look',
  text: `select t.id, o.server = $1 and o.epoch = $2 as is_own
    from unnest($3::text[]) with ordinality t(id, position) left join rsm.task_owners o on o.task_id = t.id
    where exists (select from rsm.servers s where s.name = $1 and s.epoch = $2)
      and (o.task_id is null or (o.server = $1 and o.epoch = $2) or not ${isLiving('o')})
    order by t.position`,
}

const takeStatement = {
  name: 'task-owners.take',
  text: `with free as (
      select o.task_id from rsm.task_owners o where o.task_id = any($3) and not ${isLiving('o')}
      order by o.task_id for update skip locked),
    taken as (
      update rsm.task_owners o set server = $1, epoch = $2 from free where o.task_id = free.task_id returning o.task_id),
    made as (
      insert into rsm.task_owners (task_id, server, epoch)
      select id, $1, $2 from unnest($3::text[]) id where not exists (select from rsm.task_owners o where o.task_id = id)
      order by id on conflict do nothing returning task_id)
    select task_id from taken union all select task_id from made`,
}

const releaseStatement = {
  name: 'task-owners.release',
  text: 'delete from rsm.task_owners where task_id = any($3) and server = $1 and epoch = $2',
}

const ownerStatement = {
  name: 'task-owners.owner',
  text: `select o.server as name, o.epoch from rsm.task_owners o where o.task_id = $1 and ${isLiving('o')}`,
}

const holdsStatement = {
  name: 'task-owners.holds',
  text: `select from rsm.task_owners o join rsm.servers s on s.name = o.server and s.epoch = o.epoch
    where o.task_id = $3 and o.server = $1 and o.epoch = $2`,
}

function createTaskOwners(database: Database): Pick<Ownership, 'claim' | 'release' | 'owner' | 'holds'> {
  const ask = (statement: Statement, values: readonly unknown[]) =>
    database.ask<{ task_id: string }>('write', statement, values)
  return {
    async claim({ name, epoch }, taskIds) {
      if (taskIds.length === 0) return []
      const found = await database.ask<{ id: string; is_own: boolean | null }>('write', findStatement, [
        name,
        epoch,
        taskIds,
      ])
      const mine = new Set(found.filter(({ is_own }) => is_own === true).map(({ id }) => id))
      const free = found.filter(({ is_own }) => is_own !== true).map(({ id }) => id)
      for (let at = 0; at < free.length; at += takenAtOnce) {
        const taken = await ask(takeStatement, [name, epoch, free.slice(at, at + takenAtOnce)])
        for (const { task_id } of taken) mine.add(task_id)
      }
      return taskIds.filter((id) => mine.has(id))
    },
    async release({ name, epoch }, taskIds) {
      await ask(releaseStatement, [name, epoch, taskIds])
    },
    async owner(taskId) {
      const [row] = await database.ask<Member>('write', ownerStatement, [taskId])
      return row ?? null
    },
    async holds({ name, epoch }, taskId) {
      return (await ask(holdsStatement, [name, epoch, taskId])).length > 0
    },
  }
}
