import { faultPoint } from '#fault-point'
import { RsmError } from '../../../core/errors.ts'
import { isFinal, mayBecome } from '../../../core/task/task-state.ts'
import { isoTime } from '../../clock.ts'
import { settled } from '../../executions/reported-end.ts'
import { asCancelled, asLost, asRefused, asUnsent, ended } from '../../executions/transitions.ts'
import type { End, Execution, Executions } from '../../seams/executions.ts'
import type { LinkClaim } from '../../seams/links.ts'
import type { Progress } from '../../seams/outputs.ts'
import type { Member } from '../../seams/ownership.ts'
import type { ExecutionRecord, TaskRecord } from '../../seams/records.ts'
import type { Transaction } from '../../seams/store.ts'
import type { ExecutionsDependencies } from './dependencies.ts'
import { createEnds } from './ends.ts'
import { Receipts } from './receipts.ts'
import { RunningTasks } from './running-tasks.ts'

type Point =
  | 'turn'
  | 'sent'
  | 'returned'
  | 'named'
  | 'settled'
  | 'lost'
  | 'unreachable'
  | 'skipped'
  | 'cancelled'
type Choice = readonly string[] | ((tx: Transaction) => Promise<readonly (Execution | undefined)[]>)
type Decide = (current: Execution) => Execution | null

const byTurn = (one: Execution, other: Execution) =>
  (one.dueAt ?? '') < (other.dueAt ?? '') || (one.dueAt === other.dueAt && one.id < other.id) ? -1 : 1

/** The first `count` of them in the order of their turns: many more may wait for one host. */
function firstByTurn(waiting: readonly Execution[], count: number): Execution[] {
  const first: Execution[] = []
  for (const one of waiting) {
    const at = first.findLastIndex((other) => byTurn(other, one) < 0) + 1
    if (at < count) first.splice(at, 0, one)
    if (first.length > count) first.pop()
  }
  return first
}

/** Executions on the embedded store: records there, and what follows from those of running tasks in memory. */
export async function openExecutions(deps: ExecutionsDependencies): Promise<Executions> {
  const { store, outputs, hints, links, ownership, clock, log } = deps
  const tasks = new RunningTasks(hints)
  const held = new Set<string>()
  const receipts = new Receipts(async (ids) => {
    const open = ids.filter((id) => tasks.execution(id)?.status === 'RUNNING')
    if (open.length === 0 || store.readOnlyReason !== null) return
    await change('named', open, named).catch((error: unknown) => {
      log.warn({ err: error }, 'could not write down that agents have what they were sent')
    })
  })
  const now = () => isoTime(clock.now())
  const outputOf = (execution: Execution) => tasks.of(execution).output(execution)
  const named: Decide = (current) =>
    current.status === 'RUNNING' && !current.named ? { ...current, named: true } : null

  /**
   * Changes executions as one durable step. `decide` sees the newest record of each that has not ended, and answers the
   * next one, or null to leave it. `staged` hears what changes once later steps see it, before it is durable.
   */
  async function change(
    point: Point | null,
    choice: Choice,
    decide: Decide,
    {
      first,
      staged,
    }: { first?: (tx: Transaction) => Promise<void>; staged?: (changed: Execution[]) => void } = {},
  ): Promise<Execution[]> {
    const changing = store.transact(async (tx) => {
      await first?.(tx)
      const changed: ExecutionRecord[] = []
      const chosen = typeof choice === 'function' ? await choice(tx) : choice
      for (const one of chosen) {
        const current = typeof one === 'string' ? await tx.get('executions', one) : one
        const next = current && !isFinal(current.status) ? decide(current) : null
        if (!current || !next) continue
        if (!mayBecome(current.status, next.status))
          throw new Error(`a result can not go from ${current.status} to ${next.status}`)
        tx.put('executions', next)
        changed.push(next)
      }
      if (point !== null && (changed.length > 0 || first)) faultPoint(`server.${point}.before`)
      staged?.(changed)
      return changed
    })
    receipts.join()
    const changed = await changing
    if (point !== null && (changed.length > 0 || first)) faultPoint(`server.${point}.after`)
    // Whoever takes them has been told when their turn was staged.
    return tasks.apply(changed, point !== 'turn')
  }

  /** As `change`, of those whose task this server still owns. */
  const changeOwned = (by: Member, point: Point, ids: readonly string[], decide: Decide) =>
    change(point, ids, (current) => (ownership.holdsNow(by, current.taskId) ? decide(current) : null))

  const endOf = (ends: readonly End[]) => {
    const errors = new Map(ends.map(({ id, error }) => [id, error]))
    return { ids: [...errors.keys()], error: ({ id }: Execution) => errors.get(id) ?? '' }
  }
  const isWaiting = ({ status, taskId }: Execution) => status === 'PENDING' && !held.has(taskId)

  async function load(task: TaskRecord): Promise<void> {
    const executions = await store.find('executions', 'taskId', task.id)
    const progress = await outputs.progress(task.id)
    tasks.add(task, executions, progress, clock.monotonic())
  }
  for (const task of await store.find('tasks', 'status', 'RUNNING')) await load(task)

  return {
    ...createEnds(deps, tasks),

    async create(task, executions, also) {
      faultPoint('server.created.before')
      const other = await store.transact(async (tx) => {
        const answer = await also(tx)
        if (answer !== null) return answer
        tx.put('tasks', task)
        for (const execution of executions) tx.put('executions', execution)
        return null
      })
      faultPoint('server.created.after')
      if (other === null) {
        tasks.add(task, executions, new Map<number, Progress>(), clock.monotonic())
        hints.publish('task', { id: task.id, hostId: null, change: 'created' })
        // After the answer to whoever has asked for it.
        setImmediate(() => tasks.hintLanes(executions))
      }
      return other
    },

    due: (by, ids) => {
      const dueAt = now()
      const decide = (current: Execution) =>
        isWaiting(current) && current.dueAt === null && ownership.holdsNow(by, current.taskId)
          ? { ...current, dueAt }
          : null
      // Who takes them sees them from here on, so that both steps share an fsync.
      const staged = (changed: Execution[]) => queueMicrotask(() => tasks.hintLanes(changed))
      return change('turn', ids, decide, { staged })
    },
    skip: (by, ids, error) =>
      changeOwned(by, 'skipped', ids, (current) =>
        isWaiting(current) ? ended(current, 'SKIPPED', now(), error) : null,
      ),
    unreachable(by, ends) {
      const { ids, error } = endOf(ends)
      return changeOwned(by, 'unreachable', ids, (current) =>
        isWaiting(current) ? ended(current, 'UNREACHABLE', now(), error(current)) : null,
      )
    },
    async pause(by, taskId, pauseUntil) {
      faultPoint('server.paused.before')
      await store.transact(async (tx) => {
        const task = await tx.get('tasks', taskId)
        if (task?.status === 'RUNNING' && ownership.holdsNow(by, taskId))
          tx.put('tasks', { ...task, pauseUntil })
      })
      faultPoint('server.paused.after')
    },

    async cancel(taskId, how) {
      const finished = new RsmError('conflict', `Task ${taskId} has already ended`)
      const at = now()
      // One step: were the request durable and not the rest, hosts would still start after a crash.
      const first = async (tx: Transaction) => {
        const task = await tx.get('tasks', taskId)
        if (task?.status !== 'RUNNING') throw finished
        tx.put('tasks', { ...task, cancelRequestedAt: task.cancelRequestedAt ?? at })
      }
      const decide = (current: Execution) => {
        if (!how) return asCancelled(current, outputOf(current), at)
        return current.status === 'PENDING' ? ended(current, 'CANCELLED', at, how.error) : null
      }
      const ids = tasks.get(taskId)?.executions.map(({ id }) => id) ?? []
      const changed = await change('cancelled', ids, decide, { first })
      hints.publish('task', { id: taskId, hostId: null, change: 'updated' })
      return changed
    },
    abandon(hostId) {
      const error = 'the host was deleted'
      return change(
        null,
        (tx) => tx.find('executions', 'hostId', hostId),
        (current) =>
          current.status === 'PENDING'
            ? ended(current, 'UNREACHABLE', now(), error)
            : asLost(current, outputOf(current), now(), error),
      )
    },

    /** The record is written before the frame leaves: at most one start for each host and task (contract §4). */
    async take(offers) {
      const byHost = new Map(offers.map((offer) => [offer.claim.hostId, offer]))
      const choose = async (tx: Transaction) => {
        const chosen: Execution[] = []
        for (const { claim, capacity } of offers) {
          if (!links.isCurrentNow(claim)) continue
          const open = await tx.find('executions', 'hostId', claim.hostId)
          const room = capacity - open.filter(({ status }) => status === 'RUNNING').length
          if (room <= 0) continue
          // Those of a task that is still on its way to the disk are taken when it is there.
          const due = open.filter((one) => isWaiting(one) && one.dueAt !== null && tasks.get(one.taskId))
          chosen.push(...firstByTurn(due, room))
        }
        return chosen
      }
      const at = now()
      const decide = (current: Execution): Execution | null => {
        const agent = byHost.get(current.hostId)?.agent
        return agent ? { ...current, ...agent, status: 'RUNNING', sentAt: at, startedAt: at } : null
      }
      // Before a newer link can take them over.
      const staged = (changed: Execution[]) => {
        for (const execution of changed) {
          const live = tasks.of(execution).live(execution.position)
          live.epoch = byHost.get(execution.hostId)?.claim.epoch ?? null
          live.lastHeard = clock.monotonic()
        }
      }
      return change('sent', choose, decide, { staged })
    },
    returnUnsent: (claim, ids) =>
      change('returned', ids, (current) => {
        if (current.status !== 'RUNNING' || !isOf(claim, current)) return null
        return current.cancelRequested ? ended(current, 'CANCELLED', now(), null) : asUnsent(current)
      }),
    async takeOver(claim, except) {
      const own = async (reads: Pick<Transaction, 'find'>) => {
        if (!links.isCurrentNow(claim)) return []
        const found = await reads.find('executions', 'hostId', claim.hostId)
        const sent = found.filter(({ id, status }) => status === 'RUNNING' && !except.has(id))
        for (const execution of sent) tasks.of(execution).live(execution.position).epoch = claim.epoch
        return sent
      }
      // In a transaction, for it comes after what is still on its way to the disk. Where that is full, nothing is.
      const isFull = store.readOnlyReason !== null
      const sent = isFull ? await own(store) : await store.transact(own).catch(() => own(store))
      return sent.map((execution) => tasks.of(execution).show(tasks.execution(execution.id) ?? execution))
    },
    async named(claim, ids) {
      await change('named', ids, (current) => (isOf(claim, current) ? named(current) : null))
    },
    received(id) {
      const execution = tasks.execution(id)
      if (execution?.status !== 'RUNNING' || execution.named) return
      tasks.of(execution).receive(execution)
      receipts.add(id)
    },
    refuse(claim, ends) {
      const { ids, error } = endOf(ends)
      return change('settled', ids, (current) =>
        current.status === 'RUNNING' && isOf(claim, current)
          ? asRefused(current, now(), error(current))
          : null,
      )
    },
    lose(by, ends) {
      const { ids, error } = endOf(ends)
      const mayLose = ({ taskId }: Execution) =>
        'hostId' in by ? links.isCurrentNow(by) : ownership.holdsNow(by, taskId)
      return change('lost', ids, (current) =>
        current.status === 'RUNNING' && mayLose(current)
          ? asLost(current, outputOf(current), now(), error(current))
          : null,
      )
    },

    async append(id, output, json, isOurs) {
      const execution = tasks.execution(id)
      if (!execution) return null
      const { taskId, hostId, position } = execution
      const task = tasks.of(execution)
      return task.live(position).output.append(output, json, isOurs, {
        maxBytes: task.maxOutputBytes,
        async write({ stream, sequence, data }) {
          faultPoint('server.output.before')
          await outputs.append(taskId, { hostId, stream, sequence, timestamp: now(), data, json })
          faultPoint('server.output.after')
        },
        isTruncated: () => tasks.execution(id)?.truncated === true,
        async noteTruncated() {
          await change(null, [id], (current) => ({ ...current, truncated: true }))
        },
      })
    },
    settle: (id, end) =>
      change('settled', [id], (current) => settled(end, outputOf(current), current, clock.now())),

    async find(taskId, hostId) {
      const task = tasks.get(taskId)
      const execution = task?.ofHost(hostId)
      return execution && task?.show(execution)
    },
    ofTask: async (taskId) => {
      const task = tasks.get(taskId)
      return task?.executions.map((execution) => task.show(execution)) ?? []
    },
    ofHost: async (hostId) =>
      tasks
        .openOn(hostId)
        .filter((execution) => execution.status === 'RUNNING' || isWaiting(execution))
        .toSorted(byTurn)
        .map((execution) => tasks.of(execution).show(execution)),
    open: async () => tasks.open(),
    waiting: async () => tasks.open().filter(isWaiting),
    counts: async (taskId) => tasks.get(taskId)?.counts ?? null,
    changes: async (taskId, after) => tasks.get(taskId)?.changes(after) ?? { executions: [], cursor: after },
    running: async () => tasks.ids(),

    heard(ids) {
      for (const id of ids) {
        const execution = tasks.execution(id)
        if (execution) tasks.of(execution).live(execution.position).lastHeard = clock.monotonic()
      }
    },
    silentFor(id) {
      const execution = tasks.execution(id)
      return execution ? clock.monotonic() - tasks.of(execution).live(execution.position).lastHeard : 0
    },

    held,
    async hold(taskIds) {
      for (const taskId of taskIds) if ((tasks.get(taskId)?.counts.PENDING ?? 0) > 0) held.add(taskId)
    },
    release: () => held.clear(),
    close: () => receipts.close(),
  }

  function isOf(claim: LinkClaim, { id }: Execution): boolean {
    const execution = tasks.execution(id)
    return execution !== undefined && tasks.of(execution).live(execution.position).epoch === claim.epoch
  }
}
