import { randomBytes } from 'node:crypto'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import { isRefusedByFullDisk } from '../../../disk/durable.ts'
import type { Runs } from '../ports/cluster.ts'
import type { RunRecord } from '../records/run.ts'
import type { JsonStore } from './store/store.ts'

/** Starts that a store remembers. An agent that missed more seems to prove a restore; a person decides. */
const remembered = 10_000

/** Milliseconds until a start that a full disk kept from being recorded is retried. */
const notedAgainAfter = 1000

/** Records a new start of a server, later if the disk is full; call it before any other write. */
export async function beginRun(
  store: Pick<JsonStore, 'sequence' | 'query' | 'transact'>,
  clock: Clock,
): Promise<Runs> {
  const before = store.sequence
  const previous = (await store.query('runs')).items.sort((a, b) => a.first - b.first)
  const ends = new Map(previous.map(({ id, last }) => [id, last ?? before]))
  const id = randomBytes(15).toString('base64url')
  const startedAt = isoTime(clock.now())
  let isNoted = false
  async function note(): Promise<void> {
    await store.transact(async (tx) => {
      const open = previous.filter(({ last }) => last === null).map(({ id }) => id)
      // Read again, because a restore may have been confirmed in one since the start.
      for (const run of await tx.getMany('runs', open)) if (run) tx.put('runs', { ...run, last: before })
      for (const run of forgotten(previous)) tx.remove('runs', run.id)
      tx.put('runs', { id, startedAt, first: before, last: null })
    })
    isNoted = true
  }
  /** Any fault other than a full disk has stopped the store, which reports it. */
  function noteLater(refusal: unknown): void {
    if (isRefusedByFullDisk(refusal)) setTimeout(() => void note().catch(noteLater), notedAgainAfter).unref()
  }
  await note().catch((error: unknown) => {
    if (!isRefusedByFullDisk(error)) throw error
    noteLater(error)
  })
  const mark = () => (isNoted ? { run: id, sequence: store.sequence } : null)
  return {
    id,
    startedAt,
    get sequence() {
      return store.sequence
    },
    mark,
    recent: mark,
    knows({ run, sequence }) {
      const last = run === id ? store.sequence : ends.get(run)
      return last !== undefined && sequence <= last
    },
  }
}

/** Runs to remove, failed starts first. Those with a restore stay, because they may hold work. */
function forgotten(previous: readonly RunRecord[]): RunRecord[] {
  const isIdle = ({ first, last }: RunRecord) => last !== null && last - first <= 1
  const rest = previous.filter(({ restore }) => !restore)
  const inOrder = [...rest.filter(isIdle), ...rest.filter((run) => !isIdle(run))]
  return inOrder.slice(0, Math.max(0, previous.length - remembered))
}
