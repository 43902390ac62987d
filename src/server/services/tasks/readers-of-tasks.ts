import type { ShortLived } from '../../storage/ports/short-lived.ts'

/** Milliseconds for which the other servers count a noted reader, and between two notes. */
const noted = 60_000
const noteEvery = 20_000

/** Tasks whose log is being followed or streamed; they are not removed under their readers (contract §4). */
export interface ReadersOfTasks {
  /** Whether this server has a reader. */
  has(taskId: string): boolean
  /** Whether this server has more than one reader. */
  areSeveral(taskId: string): boolean
  isReadElsewhere(taskId: string): Promise<boolean>
  /** Adds a reader; returns a function that removes it. */
  enter(taskId: string): () => void
}

/** `shared`: where the servers of one store note their readers; null with a single server. */
export function createReadersOfTasks(
  shared: Pick<ShortLived, 'put' | 'wait' | 'forget'> | null,
): ReadersOfTasks {
  const counts = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  // Ignore errors: while the store is unreachable, no server removes tasks either.
  const note = (taskId: string) => void shared?.put('reader', taskId, {}, noted).catch(() => undefined)
  const noteAll = () => {
    for (const taskId of counts.keys()) note(taskId)
  }

  function leave(taskId: string): void {
    const left = (counts.get(taskId) ?? 1) - 1
    if (left > 0) return void counts.set(taskId, left)
    counts.delete(taskId)
    void shared?.forget('reader', taskId).catch(() => undefined)
    if (counts.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    has: (taskId) => counts.has(taskId),
    areSeveral: (taskId) => (counts.get(taskId) ?? 0) > 1,
    isReadElsewhere: async (taskId) =>
      shared !== null && (await shared.wait('reader', taskId, { most: 1, life: noted })) > 0,
    enter(taskId) {
      const before = counts.get(taskId) ?? 0
      counts.set(taskId, before + 1)
      if (before === 0) note(taskId)
      if (shared) timer ??= setInterval(noteAll, noteEvery).unref()
      return () => leave(taskId)
    },
  }
}
