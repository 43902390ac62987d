import {
  asLost,
  asNamed,
  asRefused,
  asReturned,
  type Decide,
  endsById,
  sentPart,
} from '../../executions/transitions.ts'
import type { LinkClaim } from '../../ports/cluster.ts'
import type { Execution, Executions } from '../../ports/executions.ts'
import type { Transaction } from '../../ports/store.ts'
import type { Point, Steps } from './steps.ts'

export function createSending(
  steps: Steps,
): Pick<Executions, 'take' | 'returnUnsent' | 'takeOver' | 'named' | 'received' | 'refuse' | 'lose'> {
  const { tasks } = steps
  const { store, links, ownership } = steps.deps

  function isOf(claim: LinkClaim, { id }: Execution): boolean {
    const execution = tasks.execution(id)
    return execution !== undefined && tasks.of(execution).live(execution.position).epoch === claim.epoch
  }

  /** Changes executions that were marked for this link, or taken over by it. */
  const changeOf = (claim: LinkClaim, point: Point, ids: readonly string[], decide: Decide) =>
    steps.change(point, ids, (current, output) => (isOf(claim, current) ? decide(current, output) : null))

  return {
    /** Writes the record before the frame is sent: at most one start for each host and task (contract §4). */
    async take(offers) {
      const byHost = new Map(offers.map((offer) => [offer.claim.hostId, offer]))
      const choose = async (tx: Transaction) => {
        const chosen: string[] = []
        const read = (ids: readonly string[]) => tx.getMany('executions', ids)
        for (const { claim, capacity } of offers) {
          if (!links.isCurrentNow(claim)) continue
          const open = tasks.openOn(claim.hostId)
          if (open) chosen.push(...(await open.next(capacity, read, steps.isWaiting)).map(({ id }) => id))
        }
        return chosen
      }
      const at = steps.now()
      const decide = (current: Execution): Execution | null => {
        const agent = byHost.get(current.hostId)?.agent
        return agent && steps.isWaiting(current) ? { ...current, ...sentPart(at, agent) } : null
      }
      // Set the epoch before a newer link can take them over.
      const staged = (changed: Execution[]) => {
        for (const execution of changed) {
          const live = tasks.of(execution).live(execution.position)
          live.epoch = byHost.get(execution.hostId)?.claim.epoch ?? null
        }
      }
      return steps.change('sent', choose, decide, { staged })
    },

    returnUnsent: (claim, ids) => changeOf(claim, 'returned', ids, asReturned(steps.now())),

    async takeOver(claim, except) {
      const own = async (reads: Pick<Transaction, 'find'>) => {
        if (!links.isCurrentNow(claim)) return []
        const found = await reads.find('executions', 'hostId', claim.hostId)
        const sent = found.filter(
          ({ id, status, overSsh }) => status === 'RUNNING' && !overSsh && !except.has(id),
        )
        for (const execution of sent) tasks.of(execution).live(execution.position).epoch = claim.epoch
        return sent
      }
      // In a transaction, which runs after the writes in flight to the disk. On a full disk there are none.
      const isFull = store.readOnlyReason !== null
      const sent = isFull ? await own(store) : await store.transact(own).catch(() => own(store))
      return sent.map((execution) =>
        tasks.of(execution).withOutput(tasks.execution(execution.id) ?? execution),
      )
    },

    async named(claim, ids) {
      await changeOf(claim, 'named', ids, asNamed)
    },

    received(id) {
      const execution = tasks.execution(id)
      if (execution?.status !== 'RUNNING' || execution.named) return
      tasks.of(execution).receive(execution)
      steps.acks.add(id)
    },

    refuse(claim, ends) {
      const { ids, error } = endsById(ends)
      return changeOf(claim, 'settled', ids, asRefused(steps.now(), error))
    },

    lose(by, ends) {
      const { ids, error } = endsById(ends)
      const mayLose = ({ taskId }: Execution) =>
        'hostId' in by ? links.isCurrentNow(by) : ownership.holdsNow(by, taskId)
      const decide = asLost(steps.now(), error)
      return steps.change('lost', ids, (current, output) =>
        mayLose(current) ? decide(current, output) : null,
      )
    },
  }
}
