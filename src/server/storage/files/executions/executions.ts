import { faultPoint } from '#fault-point'
import { isFinal } from '../../../../core/tasks/task.ts'
import { settled } from '../../executions/ends.ts'
import { asReached, asTruncated, sentPart } from '../../executions/transitions.ts'
import { gateOf } from '../../output-line.ts'
import type { Execution, ExecutionReads, Executions } from '../../ports/executions.ts'
import type { Transaction } from '../../ports/store.ts'
import { partOf } from '../results.ts'
import { type ExecutionsDependencies, Steps } from './steps.ts'
import { createTaskSteps } from './task-steps.ts'

/** Executions in the file store: durable records, and the state of running tasks in memory. */
export async function openExecutions(deps: ExecutionsDependencies): Promise<Executions> {
  const { store, outputs } = deps
  const steps = new Steps(deps)
  const { tasks, held } = steps
  for (const task of await store.find('tasks', 'status', 'RUNNING')) {
    const executions = await store.find('executions', 'taskId', task.id)
    tasks.add(task, executions, await outputs.progress(task.id))
  }
  return {
    transition: (step) => steps.transition(step),
    ...createTaskSteps(steps),
    ...createSending(steps),
    ...createReceiving(steps),
    ...createReads(steps),
    transactWithOpen: (hostId, work) =>
      store.transact(async (tx) => {
        const all = await tx.find('executions', 'hostId', hostId)
        return work(tx, all.filter(({ status }) => !isFinal(status)).length)
      }),
    held: {
      has: (taskId) => held.has(taskId),
      ids: () => [...held],
      async add(taskIds) {
        for (const taskId of taskIds) if ((tasks.get(taskId)?.counts.PENDING ?? 0) > 0) held.add(taskId)
      },
      clear: async () => held.clear(),
    },
    close: () => steps.acks.close(),
  }
}

function createSending(steps: Steps): Pick<Executions, 'take' | 'takeOver' | 'received'> {
  const { tasks } = steps
  const { store, links } = steps.deps
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

    received(id) {
      const execution = tasks.execution(id)
      if (execution?.status !== 'RUNNING' || execution.named) return
      tasks.of(execution).receive(execution)
      steps.acks.add(id)
    },
  }
}

function createReceiving(steps: Steps): Pick<Executions, 'append' | 'reached' | 'settle'> {
  const { tasks } = steps
  const { outputs, clock } = steps.deps
  return {
    async append(id, output, json, isOurs) {
      const execution = tasks.execution(id)
      if (!execution) return null
      const { taskId, hostId, position } = execution
      const task = tasks.of(execution)
      return task.live(position).output.append(output, json, isOurs, {
        maxBytes: task.maxOutputBytes,
        async write({ stream, sequence, phase, data }) {
          faultPoint('server.output.before')
          const timestamp = steps.now()
          await outputs.append(taskId, {
            hostId,
            stream,
            sequence,
            timestamp,
            phase: gateOf(phase),
            data,
            json,
          })
          faultPoint('server.output.after')
        },
        isTruncated: () => tasks.execution(id)?.truncated === true,
        async noteTruncated() {
          await steps.transition(asTruncated(null, id))
        },
      })
    },
    async reached(id, phase) {
      const execution = tasks.execution(id)
      if (execution) await steps.transition(asReached(null, id, phase, tasks.of(execution).phases))
    },
    settle: (id, end) =>
      steps.change('settled', [id], (current, output) => settled(end, output, current, clock.now())),
  }
}

function createReads({ tasks, isWaiting }: Steps): ExecutionReads {
  return {
    async find(taskId, hostId) {
      const task = tasks.get(taskId)
      const execution = task?.ofHost(hostId)
      return execution && task?.withOutput(execution)
    },
    async page(taskId, part) {
      const task = tasks.get(taskId)
      if (!task) return []
      // In the order of the ids, without reading other hosts.
      const found =
        part && 'hostIds' in part
          ? part.hostIds.flatMap((hostId) => task.ofHost(hostId) ?? [])
          : partOf(task.executions, part)
      return found.map((execution) => task.withOutput(execution))
    },
    ofHost: async (hostId) =>
      (tasks.openOn(hostId)?.all() ?? [])
        .filter((execution) => execution.status === 'RUNNING' || isWaiting(execution))
        .map((execution) => tasks.of(execution).withOutput(execution)),
    waiting: async (hostIds) =>
      hostIds.filter((hostId) => tasks.openOn(hostId)?.waiting.some(isWaiting) === true),
    waitingOn: async (hostId) => tasks.openOn(hostId)?.waiting.filter(isWaiting).length ?? 0,
    counts: async (taskId) => tasks.get(taskId)?.counts ?? null,
    changes: async (taskId, after) => tasks.get(taskId)?.changes(after) ?? { executions: [], cursor: after },
    // Checking each of them costs nothing here.
    changedTasks: async (taskIds, after) => ({ taskIds: [...taskIds], cursor: after }),
    running: async () => tasks.ids(),
    async load() {
      const open = tasks.open()
      const running = open.filter(({ status }) => status === 'RUNNING').length
      return { tasks: tasks.ids().length, running, waiting: open.length - running }
    },
  }
}
