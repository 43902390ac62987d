import { repeat } from '../../../../disk/clock.ts'
import type { Executions, HeldTasks } from '../../ports/executions.ts'
import { createQueries } from './queries.ts'
import { createReceiving } from './receiving.ts'
import { type ClaimedRow, columns, idOf, keyOf, type Row, storedOf } from './rows.ts'
import { createSending } from './sending.ts'
import { type ExecutionsDependencies, Steps } from './steps.ts'
import { createTaskSteps } from './task-steps.ts'

export async function openPostgresExecutions(deps: ExecutionsDependencies): Promise<Executions> {
  const steps = new Steps(deps)
  const { sweepCancels, ...taskSteps } = createTaskSteps(steps)
  const { held, refresh } = createHeld(steps)
  const { inDoubtOf, ...sending } = createSending(steps)
  const { close, ...receiving } = createReceiving(steps)
  await refresh()
  const stop = startRefresh(steps, async () => {
    await refresh()
    await sweepCancels()
  })
  return {
    transition: (step) => steps.transition(step),
    ...taskSteps,
    ...sending,
    ...receiving,
    ...createQueries(steps, inDoubtOf),
    held,
    async close() {
      await stop()
      await close()
    },
  }
}

interface HeldRow {
  task_id: string
}

/** Tasks held by a restore, on all servers. Statements that start or send executions check rsm.held themselves. */
function createHeld({ deps: { database }, held }: Steps): { held: HeldTasks; refresh: () => Promise<void> } {
  let writes = 0

  function replaceHeld(rows: readonly HeldRow[]): void {
    held.clear()
    for (const { task_id } of rows) held.add(task_id)
  }

  return {
    held: {
      has: (taskId) => held.has(taskId),
      ids: () => [...held],
      async add(taskIds) {
        writes++
        // Hold only tasks with executions to start.
        const rows = await database.ask<HeldRow>(
          'api',
          `with new as (
            insert into rsm.held select t from unnest($1::text[]) as t
            where exists (select from rsm.executions e where e.task_id = t and e.status = 'PENDING')
            on conflict do nothing returning task_id)
          select task_id from new union select task_id from rsm.held`,
          [[...new Set(taskIds)]],
        )
        replaceHeld(rows)
        writes++
      },
      async clear() {
        writes++
        await database.ask('api', 'delete from rsm.held')
        held.clear()
        writes++
      },
    },
    async refresh() {
      const before = writes
      const rows = await database.ask<HeldRow>('api', {
        name: 'executions held',
        text: 'select task_id from rsm.held',
      })
      // A concurrent write may be newer than these rows.
      if (writes === before) replaceHeld(rows)
    },
  }
}

/** Milliseconds between two polls for changes of claimed rows. */
const pollInterval = 1000
/** Executions per poll; if a server has more, polls take turns. */
const maxAtOnce = 5000

/** Claimed rows that other servers changed or deleted. */
const changedText = `select i.t, i.h, e.task_id is null as is_gone, ${columns}
  from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) as i(t, h, rev, epoch)
  left join rsm.executions e on e.task_id = i.t and e.host_id = i.h
  where e.rev is distinct from i.rev or e.epoch is distinct from i.epoch`

type Found = Row & { t: string; h: number; is_gone: boolean }

/** Refreshes claimed rows that other servers change: on their hints, and each second. */
function startRefresh(steps: Steps, alsoEachSecond: () => Promise<void>): () => Promise<void> {
  const { database, hints, log } = steps.deps
  const { claimed } = steps
  /** Offset of the next poll. */
  let place = 0

  function note(rows: readonly Found[]): void {
    for (const row of rows) {
      const id = idOf(row.t, row.h)
      if (row.is_gone) claimed.drop(id)
      else claimed.note(storedOf(row))
    }
  }

  async function poll(): Promise<void> {
    const all = [...claimed.values()]
    if (all.length === 0) return
    const from = place < all.length ? place : 0
    const some = all.slice(from, from + maxAtOnce)
    place = from + some.length
    const keys = some.map(({ stored }) => keyOf(stored.execution.id))
    note(
      await database.ask<Found>('write', { name: 'executions look', text: changedText }, [
        keys.map(({ taskId }) => taskId),
        keys.map(({ hostId }) => hostId),
        some.map(({ stored }) => stored.rev),
        some.map(({ epoch }) => epoch),
      ]),
    )
  }

  function reread(own: ClaimedRow): void {
    const { id } = own.stored.execution
    // Queries of this row wait for the read. If it fails, the row stays as it was.
    own.reading ??= steps
      .read([id])
      .then(
        ([stored]) => {
          if (stored) claimed.note(stored)
          else claimed.drop(id)
        },
        () => undefined,
      )
      .finally(() => {
        own.reading = null
      })
  }

  const unsubscribe = hints.subscribe('task', null, ({ id, hostId }) => {
    if (steps.publisher.isPublishing || hostId === null) return
    const own = claimed.get(idOf(id, hostId))
    if (own) reread(own)
  })
  const polling = repeat(
    pollInterval,
    () => Promise.all([poll(), alsoEachSecond()]),
    (error) => log.debug({ err: error }, 'could not poll for changes of claimed rows'),
  )

  return async () => {
    unsubscribe()
    await polling.stop()
  }
}
