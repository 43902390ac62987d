import { useState } from 'preact/hooks'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Started, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { asksFirst } from '../../core/tasks/plan.ts'
import { call, newKey } from '../api.ts'
import { go } from '../route.ts'
import { fleetSize, targetHosts } from './named-hosts.ts'
import { useUpload, type WithFile } from './upload.tsx'

/** A task that is to start, and the file that has to be on the server first. */
export type Order = WithFile<TaskCreate>

/** What waits for an answer: the hosts it would run on are those that were asked about, whoever joins meanwhile. */
export interface Asked extends Order {
  readonly hosts: readonly Host[]
  readonly isFleet: boolean
}

interface Outcome {
  fail: (error: unknown) => void
  clear: () => void
}

/** From a filled form to a task that runs: its plan is asked about, its file is sent, and it starts once. */
export function useStart({ fail, clear }: Outcome) {
  const [isBusy, setBusy] = useState(false)
  const [asked, setAsked] = useState<Asked | undefined>()
  const { progress, stop, begin, send } = useUpload()
  // The same for a second try, so that a lost answer runs nothing twice.
  const [key, setKey] = useState(newKey)

  async function start(order: Order): Promise<void> {
    const body = await send(order)
    const { taskId } = await call<Started>('POST', 'api/tasks', { body, headers: { 'idempotency-key': key } })
    go('tasks', taskId)
  }

  /** Starts it, or shows its plan first: where that is wanted, and of many hosts. */
  async function propose(order: Order, chosen: readonly Host[], isPlan: boolean): Promise<void> {
    const { target } = order.body
    const hosts = target.hostIds === undefined ? await targetHosts(target) : chosen
    const total = await fleetSize()
    if (!isPlan && !asksFirst(hosts.length, total)) return start(order)
    const body = { ...order.body, target: { hostIds: hosts.map(({ id }) => id) } }
    setAsked({ ...order, body, hosts, isFleet: hosts.length >= total })
    setBusy(false)
  }

  function attempt(work: () => Promise<void>): void {
    setBusy(true)
    clear()
    const signal = begin()
    work().catch((error: unknown) => {
      if (!signal.aborted) fail(error)
      setBusy(false)
    })
  }

  return {
    isBusy,
    asked,
    /** Of an upload that runs. */
    progress,
    stop,
    propose: (order: () => Order, chosen: readonly Host[], isPlan: boolean) =>
      attempt(async () => propose(order(), chosen, isPlan)),
    /** The answer to what is asked. */
    answer: (isYes: boolean): void => {
      setAsked(undefined)
      if (isYes && asked) attempt(() => start(asked))
    },
    /** What is typed anew is another task. */
    renew: () => setKey(newKey()),
  }
}
