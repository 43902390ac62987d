import type { Member } from '../../ports/cluster.ts'
import type { Ask } from '../connection/database.ts'

/** Whether the member owns the task, which it keeps until the end of the transaction. */
export async function holdsTask(ask: Ask, { name, epoch }: Member, taskId: string): Promise<boolean> {
  const rows = await ask(
    {
      name: 'executions fence',
      text: `select 1 from rsm.task_owners o join rsm.servers s on s.name = o.server and s.epoch = o.epoch
        where o.task_id = $1 and o.server = $2 and o.epoch = $3 for share of o`,
    },
    [taskId, name, epoch],
  )
  return rows.length > 0
}
