import { faultPoint } from '#fault-point'
import type { Log } from '../log.ts'
import type { ExecutionRecord } from '../seams/records.ts'
import type { Store } from '../seams/store.ts'
import type { TaskRun } from './task-run.ts'

/** A receipt waits for so long for another write to go out with; milliseconds. */
const longest = 1000
/** One that is younger stays behind: most scripts end before, and then nothing is left to note. */
const settling = 100

interface Receipt {
  run: TaskRun
  position: number
  /** Milliseconds, monotonic. */
  at: number
}

/**
 * That agents have what they were sent. Nothing waits for it to be on disk: what is not there after a crash is judged by
 * the agent's next HELLO. So it costs no commit where others are under way, and one a second where none is.
 */
export interface Receipts {
  add(run: TaskRun, position: number): void
  /** Another write is on its way: what is due shares its fsync. */
  join(): void
  /** Notes all; resolves when that is durable, or refused. */
  close(): Promise<void>
}

export function createReceipts(store: Store, log: Log): Receipts {
  let waiting: Receipt[] = []
  let timer: NodeJS.Timeout | undefined

  async function note(receipts: Receipt[]): Promise<void> {
    faultPoint('server.named.before')
    const noted = await store.transact(async (tx) => {
      const received: [Receipt, ExecutionRecord][] = []
      for (const receipt of receipts) {
        const id = receipt.run.executions[receipt.position]?.id
        const current = id === undefined ? undefined : await tx.get('executions', id)
        if (current?.status !== 'RUNNING' || current.named) continue
        tx.put('executions', { ...current, named: true })
        received.push([receipt, current])
      }
      return received
    })
    faultPoint('server.named.after')
    for (const [{ run, position }] of noted) {
      const execution = run.executions[position]
      if (execution?.status === 'RUNNING') run.apply({ ...execution, named: true })
    }
  }

  function flush(until: number): Promise<void> {
    // In the order in which they came.
    const young = waiting.findIndex(({ at }) => at > until)
    if (young === 0 || waiting.length === 0) return Promise.resolve()
    const due = young < 0 ? waiting : waiting.slice(0, young)
    waiting = young < 0 ? [] : waiting.slice(young)
    const open = due.filter(({ run, position }) => run.executions[position]?.status === 'RUNNING')
    if (open.length === 0) return Promise.resolve()
    return note(open).catch((error: unknown) => {
      log.warn({ err: error }, 'could not note that agents have what they were sent')
    })
  }

  function arm(): void {
    timer ??= setTimeout(() => {
      timer = undefined
      void flush(performance.now())
      if (waiting.length > 0) arm()
    }, longest)
    timer.unref()
  }

  return {
    add(run, position) {
      waiting.push({ run, position, at: performance.now() })
      arm()
    },
    join: () => void flush(performance.now() - settling),
    async close() {
      clearTimeout(timer)
      if (store.readOnlyReason === null) await flush(Number.POSITIVE_INFINITY)
    },
  }
}
