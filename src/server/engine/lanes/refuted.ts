import { fetchedId } from '../../files/files.ts'
import type { EngineParts } from '../parts.ts'

/** Tasks whose type is remembered, so that the ends of a large task read it once. */
const mostKnown = 1000

/** Checks the ends that agents report against what the server has. */
export function createRefuted({ store }: Pick<EngineParts, 'store'>) {
  const fetches = new Map<string, boolean>()

  async function isFetch(taskId: string): Promise<boolean> {
    const known = fetches.get(taskId)
    if (known !== undefined) return known
    const is = (await store.get('tasks', taskId))?.type === 'FETCH'
    fetches.set(taskId, is)
    const [oldest] = fetches.keys()
    if (fetches.size > mostKnown && oldest !== undefined) fetches.delete(oldest)
    return is
  }

  return {
    isFetch,
    /** Returns why a SUCCESS cannot be true; null if it may be. */
    async reason(taskId: string, hostId: number): Promise<string | null> {
      if (!(await isFetch(taskId))) return null
      const isHere = (await store.get('files', fetchedId(taskId, hostId)))?.isComplete === true
      return isHere ? null : 'its agent reports SUCCESS, but has not sent the complete file'
    },
  }
}
