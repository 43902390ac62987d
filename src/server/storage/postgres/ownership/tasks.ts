import type { Member, Ownership } from '../../ports/cluster.ts'
import type { Database, Statement } from '../connection/database.ts'
import { isLiving } from './lives.ts'

/** Tasks that are taken at once: so several servers share what a dead one has left. */
const atOnce = 20

/** Those that are this member's, and those that it may take. */
const look = {
  name: 'task-owners.look',
  text: `select t.id, o.server = $1 and o.epoch = $2 as is_own
    from unnest($3::text[]) with ordinality t(id, position) left join rsm.task_owners o on o.task_id = t.id
    where exists (select from rsm.servers s where s.name = $1 and s.epoch = $2)
      and (o.task_id is null or (o.server = $1 and o.epoch = $2) or not ${isLiving('o')})
    order by t.position`,
}

const take = {
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

const release = {
  name: 'task-owners.release',
  text: 'delete from rsm.task_owners where task_id = any($3) and server = $1 and epoch = $2',
}

const owner = {
  name: 'task-owners.owner',
  text: `select o.server as name, o.epoch from rsm.task_owners o where o.task_id = $1 and ${isLiving('o')}`,
}

const holds = {
  name: 'task-owners.holds',
  text: `select from rsm.task_owners o join rsm.servers s on s.name = o.server and s.epoch = o.epoch
    where o.task_id = $3 and o.server = $1 and o.epoch = $2`,
}

/** Which server owns which task, as rows of rsm.task_owners say. */
export function createTaskOwners(
  database: Database,
): Pick<Ownership, 'claim' | 'release' | 'owner' | 'holds'> {
  const ask = (statement: Statement, values: readonly unknown[]) =>
    database.ask<{ task_id: string }>('write', statement, values)
  return {
    async claim({ name, epoch }, taskIds) {
      if (taskIds.length === 0) return []
      const found = await database.ask<{ id: string; is_own: boolean | null }>('write', look, [
        name,
        epoch,
        taskIds,
      ])
      const mine = new Set(found.filter(({ is_own }) => is_own === true).map(({ id }) => id))
      const free = found.filter(({ is_own }) => is_own !== true).map(({ id }) => id)
      for (let at = 0; at < free.length; at += atOnce) {
        const taken = await ask(take, [name, epoch, free.slice(at, at + atOnce)])
        for (const { task_id } of taken) mine.add(task_id)
      }
      return taskIds.filter((id) => mine.has(id))
    },
    async release({ name, epoch }, taskIds) {
      await ask(release, [name, epoch, taskIds])
    },
    async owner(taskId) {
      const [row] = await database.ask<Member>('write', owner, [taskId])
      return row ?? null
    },
    async holds({ name, epoch }, taskId) {
      return (await ask(holds, [name, epoch, taskId])).length > 0
    },
  }
}
