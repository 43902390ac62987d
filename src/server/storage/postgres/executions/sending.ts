import { AckBatcher } from '../../executions/ack-batcher.ts'
import { asLost, asNamed, asRefused, asReturned, endsById } from '../../executions/transitions.ts'
import type { Executions } from '../../ports/executions.ts'
import type { Steps } from './steps.ts'
import { createTaking } from './taking.ts'

type Sending = Pick<
  Executions,
  'take' | 'returnUnsent' | 'takeOver' | 'named' | 'received' | 'refuse' | 'lose'
>

/** What leaves for hosts over their links, and what becomes of that until its agent has it. */
export function createSending(steps: Steps): Sending & {
  doubtfulOf: (hostIds: readonly number[]) => number[]
  close: () => Promise<void>
} {
  const { log } = steps.deps
  const { take, takeOver, doubtful } = createTaking(steps)

  /** By the epochs under which this server has them; those that have gone elsewhere or ended meanwhile are left. */
  async function writeAcks(ids: readonly string[]): Promise<void> {
    const byEpoch = new Map<number, string[]>()
    for (const id of ids) {
      const own = steps.inHand.get(id)
      if (own) byEpoch.set(own.epoch, [...(byEpoch.get(own.epoch) ?? []), id])
    }
    const writing = [...byEpoch].map(([epoch, its]) => steps.change('named', its, asNamed, { epoch }))
    await Promise.all(writing).catch((error: unknown) => {
      log.warn({ err: error }, 'could not write down that agents have what they were sent')
    })
  }
  const acks = new AckBatcher(writeAcks)

  return {
    take,
    takeOver: (claim, except) => takeOver({ claim, except }),
    doubtfulOf: (hostIds) => doubtful.of(hostIds),
    close: () => acks.close(),

    returnUnsent: (claim, ids) =>
      steps.change('returned', ids, asReturned(steps.now()), { epoch: claim.epoch }),

    async named(claim, ids) {
      await steps.change('named', ids, asNamed, { epoch: claim.epoch })
    },

    received(id) {
      const own = steps.inHand.get(id)
      if (!own || own.isReceived) return
      own.isReceived = true
      acks.add(id)
    },

    refuse(claim, ends) {
      const { ids, error } = endsById(ends)
      return steps.change('settled', ids, asRefused(steps.now(), error), { epoch: claim.epoch })
    },

    lose(by, ends) {
      const { ids, error } = endsById(ends)
      return steps.change('lost', ids, asLost(steps.now(), error), { fence: by })
    },
  }
}
