import type { Hints } from '../../ports/hints.ts'
import type { Outputs } from '../../ports/outputs.ts'
import type { Database } from '../connection/database.ts'
import { type Append, createAppend } from './append.ts'
import { createForget } from './forget.ts'
import { createReads } from './read.ts'

/** Outputs in PostgreSQL, and the way in for what executions say, which their records guard. */
export interface PostgresOutputs extends Outputs {
  appendGuarded: Append
}

/** PostgreSQL answers for what it stores: nothing is found to be damaged here. */
const undamaged: ReadonlyMap<number, string> = new Map()

export function createPostgresOutputs(database: Database, hints: Hints): PostgresOutputs {
  const append = createAppend(database, (id) => hints.publish('output', { id }))
  return {
    appendGuarded: append,
    async append(taskId, entry) {
      await append({ taskId, entry, guard: null })
    },
    ...createReads(database),
    damages: () => undamaged,
    finish: async () => undefined,
    async size(taskId) {
      const [head] = await database.ask<{ bytes: number }>(
        'api',
        { name: 'output size', text: 'select bytes from rsm.output_heads where task_id = $1' },
        [taskId],
      )
      return head?.bytes ?? 0
    },
    forget: createForget(database),
    close: async () => undefined,
  }
}
