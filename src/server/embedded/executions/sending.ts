import { asLost, asRefused, asUnsent, ended } from '../../executions/transitions.ts'
import type { Execution, Executions } from '../../seams/executions.ts'
import type { LinkClaim } from '../../seams/links.ts'
import type { Transaction } from '../../seams/store.ts'
import { endsById, named, type Steps } from './steps.ts'

/** What leaves for hosts over their links, and what becomes of that until its agent has it. */
export function createSending(
  steps: Steps,
): Pick<Executions, 'take' | 'returnUnsent' | 'takeOver' | 'named' | 'received' | 'refuse' | 'lose'> {
  const { tasks } = steps
  const { store, links, ownership, clock } = steps.deps

  function isOf(claim: LinkClaim, { id }: Execution): boolean {
    const execution = tasks.execution(id)
    return execution !== undefined && tasks.of(execution).live(execution.position).epoch === claim.epoch
  }

  return {
    /** The record is written before the frame leaves: at most one start for each host and task (contract §4). */
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
        return agent && steps.isWaiting(current)
          ? { ...current, ...agent, status: 'RUNNING', sentAt: at, startedAt: at }
          : null
      }
      // Before a newer link can take them over.
      const staged = (changed: Execution[]) => {
        for (const execution of changed) {
          const live = tasks.of(execution).live(execution.position)
          live.epoch = byHost.get(execution.hostId)?.claim.epoch ?? null
          live.lastHeard = clock.monotonic()
        }
      }
      return steps.change('sent', choose, decide, { staged })
    },

    returnUnsent: (claim, ids) =>
      steps.change('returned', ids, (current) => {
        if (current.status !== 'RUNNING' || !isOf(claim, current)) return null
        return current.cancelRequested ? ended(current, 'CANCELLED', steps.now(), null) : asUnsent(current)
      }),

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
      // In a transaction, for it comes after what is still on its way to the disk. Where that is full, nothing is.
      const isFull = store.readOnlyReason !== null
      const sent = isFull ? await own(store) : await store.transact(own).catch(() => own(store))
      return sent.map((execution) => tasks.of(execution).show(tasks.execution(execution.id) ?? execution))
    },

    async named(claim, ids) {
      await steps.change('named', ids, (current) => (isOf(claim, current) ? named(current) : null))
    },

    received(id) {
      const execution = tasks.execution(id)
      if (execution?.status !== 'RUNNING' || execution.named) return
      tasks.of(execution).receive(execution)
      steps.receipts.add(id)
    },

    refuse(claim, ends) {
      const { ids, error } = endsById(ends)
      return steps.change('settled', ids, (current) =>
        current.status === 'RUNNING' && isOf(claim, current)
          ? asRefused(current, steps.now(), error(current))
          : null,
      )
    },

    lose(by, ends) {
      const { ids, error } = endsById(ends)
      const mayLose = ({ taskId }: Execution) =>
        'hostId' in by ? links.isCurrentNow(by) : ownership.holdsNow(by, taskId)
      return steps.change('lost', ids, (current) =>
        current.status === 'RUNNING' && mayLose(current)
          ? asLost(current, steps.outputOf(current), steps.now(), error(current))
          : null,
      )
    },
  }
}
