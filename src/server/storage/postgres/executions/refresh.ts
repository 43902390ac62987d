import { repeat } from '../../../../disk/clock.ts'
import type { Own } from './in-hand.ts'
import { columns, idOf, keyOf, type Row, storedOf } from './rows.ts'
import type { Steps } from './steps.ts'

/** Milliseconds between two looks at what others have changed of what is in hand. */
const lookEvery = 1000
/** Executions of one look: those of a server with more have their turns. */
const mostAtOnce = 5000

/** Those of which others have written something, or that are gone. */
const text = `select i.t, i.h, e.task_id is null as is_gone, ${columns}
  from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) as i(t, h, rev, epoch)
  left join rsm.executions e on e.task_id = i.t and e.host_id = i.h
  where e.rev is distinct from i.rev or e.epoch is distinct from i.epoch`

type Found = Row & { t: string; h: number; is_gone: boolean }

/** Keeps what this server has in hand as others change it: when they hint at it, and each second. */
export function startRefresh(steps: Steps, alsoEachSecond: () => Promise<void>): () => Promise<void> {
  const { database, hints, log } = steps.deps
  const { inHand } = steps
  /** Where the next look begins. */
  let place = 0

  function note(rows: readonly Found[]): void {
    for (const row of rows) {
      const id = idOf(row.t, row.h)
      if (row.is_gone) inHand.drop(id)
      else inHand.note(storedOf(row))
    }
  }

  async function look(): Promise<void> {
    const all = [...inHand.values()]
    if (all.length === 0) return
    const from = place < all.length ? place : 0
    const some = all.slice(from, from + mostAtOnce)
    place = from + some.length
    const keys = some.map(({ stored }) => keyOf(stored.execution.id))
    note(
      await database.ask<Found>('write', { name: 'executions look', text }, [
        keys.map(({ taskId }) => taskId),
        keys.map(({ hostId }) => hostId),
        some.map(({ stored }) => stored.rev),
        some.map(({ epoch }) => epoch),
      ]),
    )
  }

  function readAnew(own: Own): void {
    const { id } = own.stored.execution
    // What is asked of it meanwhile waits; without an answer it stays as it was.
    own.reading ??= steps
      .read([id])
      .then(
        ([stored]) => {
          if (stored) inHand.note(stored)
          else inHand.drop(id)
        },
        () => undefined,
      )
      .finally(() => {
        own.reading = null
      })
  }

  const unsubscribe = hints.subscribe('task', null, ({ id, hostId }) => {
    if (steps.tell.isTelling || hostId === null) return
    const own = inHand.get(idOf(id, hostId))
    if (own) readAnew(own)
  })
  const looking = repeat(
    lookEvery,
    () => Promise.all([look(), alsoEachSecond()]),
    (error) => log.debug({ err: error }, 'could not look at what others have changed'),
  )

  return async () => {
    unsubscribe()
    await looking.stop()
  }
}
