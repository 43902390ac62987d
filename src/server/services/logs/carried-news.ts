import type { CarriedBytes } from '../../../core/protocol/http/logs.ts'
import type { Carried } from '../../files/carried.ts'

/**
 * For one follower of a task: each call answers the hosts of which more of their file has passed since the one before; of `hostId` alone,
 * where that is given.
 */
export function carriedNews(
  { passed }: Pick<Carried, 'passed'>,
  taskId: string,
  hostId: number | undefined,
): () => CarriedBytes['hosts'] {
  let told: ReadonlyMap<number, number> = new Map()
  return () => {
    const now = passed(taskId)
    const news = [...now]
      .filter(([id, bytes]) => told.get(id) !== bytes && (hostId === undefined || hostId === id))
      .map(([id, bytes]) => ({ hostId: id, bytes }))
    told = now
    return news
  }
}
