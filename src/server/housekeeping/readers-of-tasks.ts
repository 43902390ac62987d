/** Tasks whose log is being followed or streamed just now: those are not removed under their readers (contract §4). */
export interface ReadersOfTasks {
  has(taskId: string): boolean
  /** By more than one. */
  areSeveral(taskId: string): boolean
  /** Answers what ends the reading. */
  enter(taskId: string): () => void
}

export function createReadersOfTasks(): ReadersOfTasks {
  const counts = new Map<string, number>()
  return {
    has: (taskId) => counts.has(taskId),
    areSeveral: (taskId) => (counts.get(taskId) ?? 0) > 1,
    enter(taskId) {
      counts.set(taskId, (counts.get(taskId) ?? 0) + 1)
      return () => {
        const left = (counts.get(taskId) ?? 1) - 1
        if (left > 0) counts.set(taskId, left)
        else counts.delete(taskId)
      }
    },
  }
}
