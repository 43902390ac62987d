import type { ShortLived } from '../../storage/ports/short-lived.ts'

/** Milliseconds for which the other servers of the store take a reader for one, and between two notes of it. */
const noted = 60_000
const noteEvery = 20_000

/** Tasks whose log is being followed or streamed just now: those are not removed under their readers (contract §4). */
export interface ReadersOfTasks {
  /** At this server. */
  has(taskId: string): boolean
  /** By more than one. */
  areSeveral(taskId: string): boolean
  /** Whether another server of the store has one. */
  isReadElsewhere(taskId: string): Promise<boolean>
  /** Answers what ends the reading. */
  enter(taskId: string): () => void
}

/** `shared`: where the servers of one store note what they read; null where there is one server. */
export function createReadersOfTasks(
  shared: Pick<ShortLived, 'put' | 'wait' | 'forget'> | null,
): ReadersOfTasks {
  const counts = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  // From a store that can't be reached nobody removes anything either.
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
