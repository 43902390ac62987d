import { randomBytes } from 'node:crypto'
import type { RunMark } from '../core/protocol/messages.ts'
import { type Clock, isoTime } from './clock.ts'
import type { RunRecord } from './store/records.ts'
import type { Store } from './store/store.ts'

/** Starts that a store remembers; an agent that was away for longer looks like a witness of a restore, and a person decides. */
const remembered = 10_000

/** The starts of servers on one store: agents remember how far it had come, and so notice when it is older than that. */
export interface Runs {
  /** This one. */
  readonly id: string
  readonly startedAt: string
  /** How far the store has come, on disk: an ordinary crash takes nothing of it back. */
  mark(): RunMark
  /** Whether the store has what a mark speaks of. */
  knows(mark: RunMark): boolean
}

/** Notes a new start of a server; to be called before anything else is written. */
export async function beginRun(store: Store, clock: Clock): Promise<Runs> {
  const before = store.sequence
  const former = (await store.all('runs')).toSorted((a, b) => a.first - b.first)
  const ends = new Map(former.map(({ id, last }) => [id, last ?? before]))
  const id = randomBytes(15).toString('base64url')
  const startedAt = isoTime(clock.now())
  await store.transact((tx) => {
    for (const run of former) if (run.last === null) tx.put('runs', { ...run, last: before })
    for (const run of forgotten(former)) tx.remove('runs', run.id)
    tx.put('runs', { id, startedAt, first: before, last: null })
  })
  return {
    id,
    startedAt,
    mark: () => ({ run: id, sequence: store.sequence }),
    knows({ run, sequence }) {
      const last = run === id ? store.sequence : ends.get(run)
      return last !== undefined && sequence <= last
    },
  }
}

/** One with a restore is kept: work may be held by it. Failed starts, which wrote their own begin only, go first. */
function forgotten(former: readonly RunRecord[]): RunRecord[] {
  const isIdle = ({ first, last }: RunRecord) => last !== null && last - first <= 1
  const rest = former.filter(({ restore }) => !restore)
  const inOrder = [...rest.filter(isIdle), ...rest.filter((run) => !isIdle(run))]
  return inOrder.slice(0, Math.max(0, former.length - remembered))
}
