import { useState } from 'preact/hooks'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Started, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { asksFirst } from '../../core/tasks/plan.ts'
import { call, newKey } from '../api.ts'
import { go } from '../route.ts'
import { fleetSize, targetHosts } from './named-hosts.ts'
import { useUpload, type WithFile } from './upload.tsx'

export type Order = WithFile<TaskCreate>

/** An order to confirm: fixed to the hosts that are shown, even if others join meanwhile. */
export interface Asked extends Order {
  readonly hosts: readonly Host[]
  readonly isFleet: boolean
}

interface Outcome {
  fail: (error: unknown) => void
  clear: () => void
}

/** Starts a task from the form: confirms its plan, uploads its file, and starts it once. */
export function useStart({ fail, clear }: Outcome) {
  const [isBusy, setBusy] = useState(false)
  const [asked, setAsked] = useState<Asked | undefined>()
  const { progress, stop, begin, send } = useUpload()
  // The same key for a retry, so that a lost response does not start the task twice.
  const [key, setKey] = useState(newKey)

  async function start(order: Order): Promise<void> {
    const body = await send(order)
    const { taskId } = await call<Started>('POST', 'api/tasks', { body, headers: { 'idempotency-key': key } })
    go('tasks', taskId)
  }

  /** Starts it, or first shows its plan: on request, or for many hosts. */
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
    progress,
    stop,
    propose: (order: () => Order, chosen: readonly Host[], isPlan: boolean) =>
      attempt(async () => propose(order(), chosen, isPlan)),
    answer: (isYes: boolean): void => {
      setAsked(undefined)
      if (isYes && asked) attempt(() => start(asked))
    },
    /** Edits make it another task. */
    renew: () => setKey(newKey()),
  }
}
