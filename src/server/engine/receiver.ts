import { faultPoint } from '#fault-point'
import { LineBudget } from '../../core/line-budget.ts'
import type { TaskResult } from '../../core/protocol/http/tasks.ts'
import type { ScriptComplete, ScriptOutput, ScriptReceived } from '../../core/protocol/messages.ts'
import { isFinal } from '../../core/task/task-state.ts'
import { isoTime } from '../clock.ts'
import type { AgentLink } from './agent-link.ts'
import { refused, stored, take } from './pending-output.ts'
import { settled, signalOf, statusOf } from './reported-end.ts'
import { type EngineState, heardJournal } from './state.ts'
import type { Live, PendingOutput, TaskRun } from './task-run.ts'

/** An agent of ours keeps the cap itself, with a marker and the last 64 KiB past it; this is what it may exceed … */
const capSlack = 256 * 1024
/** … and it counts what the script wrote, of which a byte that is no UTF-8 comes as the three of U+FFFD. */
const replacementBytes = 3
/**
 * What a frame counts beside its bytes: it takes more on disk, but a script that says a word a hundred times a second is
 * to keep all of it for most of a day.
 */
const frameBytes = 32
/** An end whose output has not all come, as far as it has. */
function withoutTheRest({ error, lastSequence = -1 }: ScriptComplete, { storedSequence }: Live) {
  const missing = `output is missing: its agent told of ${lastSequence + 1} pieces and sent ${storedSequence + 1}`
  return { lastSequence: storedSequence, error: error ? `${error}; ${missing}` : missing }
}

export interface Receiver {
  /**
   * Takes in a piece of output; resolves when it is durable or dropped. Called in the order of arrival. `json` is its
   * text as JSON, where it came so.
   */
  output(link: AgentLink, frameId: string, output: ScriptOutput, json?: Uint8Array): Promise<void>
  /** The agent has an execution in its journal; resolves when that is taken in, which is before it is on disk. */
  received(link: AgentLink, frameId: string, received: ScriptReceived): Promise<void>
  /** Takes in the end of an execution; resolves when it is durable and acknowledged. */
  complete(link: AgentLink, frameId: string, complete: ScriptComplete): Promise<void>
}

export function createReceiver(state: EngineState): Receiver {
  const foreign = new LineBudget()
  let amending: Promise<void> = Promise.resolve()
  const refuse = (link: AgentLink, code: number, message: string, refId: string) =>
    link.send('ERROR', { code, message, refId })

  /** The link over which the agent listens now: the one on which a frame came may have been replaced since. */
  const present = (link: AgentLink) => state.lane(link.hostId).link ?? link

  /** One acknowledgement for all that became durable at once. */
  function acknowledge(link: AgentLink, taskId: string, live: Live): void {
    if (!link.hello || live.acknowledging) return
    live.acknowledging = true
    setImmediate(() => {
      live.acknowledging = false
      const now = present(link)
      if (now.hello) now.send('SCRIPT_ACK', { taskId, sequence: live.storedSequence })
    })
  }

  /** A frame for a task that does not run: of an ended one it is acknowledged and dropped (contract §6). */
  async function notRunning(link: AgentLink, frameId: string, taskId: string): Promise<'ended' | 'refused'> {
    const task = await state.store.get('tasks', taskId)
    if (!task) {
      refuse(link, 404, `no task ${taskId}`, frameId)
      return 'refused'
    }
    const archived = await state.results.read(taskId)
    if (archived && !archived.results.some((result) => result.hostId === link.hostId)) {
      notYours(link, frameId, taskId)
      return 'refused'
    }
    return 'ended'
  }

  function notYours(link: AgentLink, frameId: string, taskId: string): void {
    const { agentId, hostId } = link
    const leftOut = foreign.take(agentId, state.clock.monotonic())
    if (leftOut !== null)
      state.log.warn({ agentId, hostId, taskId, leftOut }, "a frame for another host's task")
    state.facts.publish('foreignFrame', { agentId, hostId, type: 'task', id: taskId })
    refuse(link, 403, `task ${taskId} does not run on this host`, frameId)
  }

  async function store(
    link: AgentLink,
    run: TaskRun,
    live: Live,
    output: ScriptOutput,
    json: Uint8Array | undefined,
    pending: PendingOutput,
  ): Promise<void> {
    try {
      faultPoint('server.output.before')
      await state.outputs.append(run.task.id, {
        hostId: link.hostId,
        stream: output.stream,
        sequence: output.sequence,
        timestamp: isoTime(state.clock.now()),
        data: output.data,
        json,
      })
      faultPoint('server.output.after')
      stored(live, pending)
      acknowledge(link, run.task.id, live)
      live.early?.progressed()
    } catch (error) {
      notStored(link, run, live, pending, error)
    }
  }

  /**
   * A piece past the bound: only that there was one goes to disk, once. By that a later life of the server knows that the
   * numbers which it lacks were let go, and does not ask for them again.
   */
  async function letGo(link: AgentLink, run: TaskRun, live: Live, pending: PendingOutput): Promise<void> {
    await live.appended
    if (!live.pending.has(pending)) return
    const execution = run.ofHost(link.hostId)
    try {
      if (execution && !execution.truncated)
        await state.change(run, [execution.position], (current) => ({ ...current, truncated: true }))
    } catch (error) {
      return notStored(link, run, live, pending, error)
    }
    stored(live, pending)
    acknowledge(link, run.task.id, live)
    live.early?.progressed()
  }

  function notStored(
    link: AgentLink,
    run: TaskRun,
    live: Live,
    pending: PendingOutput,
    error: unknown,
  ): void {
    // A base-protocol agent sends nothing twice: what could not be stored is gone.
    if (!link.hello) live.incomplete = true
    if (!refused(live, pending)) return
    live.truncated = run.ofHost(link.hostId)?.truncated === true
    state.log.warn({ err: error, taskId: run.task.id }, 'could not store output')
    // Not acknowledged, so the agent keeps it; it goes back to what is stored only over its next link.
    present(link).close(1013, 'the server can not store output just now')
  }

  /** What is learnt after a final state goes to `lateResult` (contract §4). */
  async function late(link: AgentLink, complete: ScriptComplete, run: TaskRun | undefined): Promise<void> {
    // That its end can't be known is nothing that is learnt.
    if (complete.status === 'LOST') return
    const lateResult = {
      status: statusOf(complete, complete.status !== undefined).status,
      exitCode: complete.exitCode,
      signal: signalOf(complete),
      completedAt: isoTime(state.clock.now()),
    } as const
    const isOpen = () => run !== undefined && run.counts.PENDING + run.counts.RUNNING > 0
    if (run && isOpen()) {
      const execution = run.ofHost(link.hostId)
      if (!execution || execution.lateResult || execution.exitCode !== null) return
      faultPoint('server.late.before')
      const kept = await state.store.transact(async (tx) => {
        // The task may have ended meanwhile, and its executions with it.
        const current = await tx.get('executions', execution.id)
        if (!current) return null
        const next = { ...current, lateResult }
        tx.put('executions', next)
        return next
      })
      faultPoint('server.late.after')
      if (kept) run.apply(kept)
      // Where the task has ended in this very moment, its results may have been written down without this one.
      if (kept && isOpen()) return
    }
    await run?.finished
    await amend(complete.taskId, link.hostId, lateResult)
  }

  /** One after the other: each reads what the one before has written. */
  function amend(taskId: string, hostId: number, lateResult: TaskResult['lateResult']): Promise<void> {
    amending = amending
      .catch(() => undefined)
      .then(async () => {
        const archived = await state.results.read(taskId)
        const result = archived?.results.find((one) => one.hostId === hostId)
        const known = result?.exitCode !== null || result.lateResult !== null
        if (!archived || !result || known) return
        const results = archived.results.map((other) => (other === result ? { ...other, lateResult } : other))
        faultPoint('server.late.before')
        await state.results.write(taskId, { ...archived, results })
        // Retention may have removed the task since it was read: nothing would ever look for this again.
        if (!(await state.store.get('tasks', taskId))) await state.results.forget(taskId)
        faultPoint('server.late.after')
      })
    return amending
  }

  return {
    async received(link, frameId, { taskId, journal }) {
      const { hostId, hello } = link
      if (hello?.instanceId !== undefined)
        heardJournal(state.lane(hostId), hello.instanceId, journal.sequence)
      const run = state.runs.get(taskId)
      if (!run) return void (await notRunning(link, frameId, taskId))
      const execution = run.ofHost(hostId)
      if (!execution || execution.sentAt === null) return notYours(link, frameId, taskId)
      const live = run.live(execution.position, state.clock.monotonic())
      live.lastWord = state.clock.monotonic()
      if (isFinal(execution.status) || execution.named || live.received) return
      live.received = true
      state.receipts.add(run, execution.position)
    },

    async output(link, frameId, output, json) {
      const run = state.runs.get(output.taskId)
      if (!run) {
        if ((await notRunning(link, frameId, output.taskId)) === 'ended' && link.hello)
          link.send('SCRIPT_ACK', { taskId: output.taskId, sequence: output.sequence })
        return
      }
      const execution = run.ofHost(link.hostId)
      if (!execution || execution.sentAt === null) return notYours(link, frameId, output.taskId)
      const live = run.live(execution.position, state.clock.monotonic())
      live.lastWord = state.clock.monotonic()
      if (isFinal(execution.status)) {
        if (link.hello) link.send('SCRIPT_ACK', { taskId: output.taskId, sequence: output.sequence })
        return
      }
      const expected = live.lastSequence + 1
      // Seen before, or past a gap: neither is stored; the acknowledgement says where to go on.
      const isPastGap = link.hello && output.sequence > expected && !live.truncated
      if (output.sequence < expected || isPastGap) return acknowledge(link, run.task.id, live)
      const bytes = Buffer.byteLength(output.data)
      const bound = run.task.maxOutputBytes * (link.hello ? replacementBytes : 1) + capSlack
      const pending = take(live, output, bytes)
      if (live.stdoutBytes + live.stderrBytes + live.frames * frameBytes > bound) live.truncated = true
      live.appended = live.truncated
        ? letGo(link, run, live, pending)
        : store(link, run, live, output, json, pending)
      return live.appended
    },

    async complete(link, frameId, complete) {
      const { taskId } = complete
      const release = () => link.hello && link.send('SCRIPT_ACK', { taskId, complete: true })
      const run = state.runs.get(taskId)
      const execution = run?.ofHost(link.hostId)
      if (!run) {
        if ((await notRunning(link, frameId, taskId)) === 'refused') return
        await late(link, complete, undefined)
        release()
        return
      }
      if (!execution || execution.sentAt === null) return notYours(link, frameId, taskId)
      const live = run.live(execution.position, state.clock.monotonic())
      live.lastWord = state.clock.monotonic()
      await live.appended
      const { lastSequence = -1 } = complete
      // Of what has ended before (LOST) output is dropped and never gets there: its late end must not wait for it.
      const isAwaited = lastSequence > live.storedSequence && !live.truncated
      if (link.hello && isAwaited && !isFinal(execution.status)) {
        const settle = (end: ScriptComplete) => {
          live.early = null
          this.complete(link, frameId, end).catch((error: unknown) => {
            state.log.error({ err: error, taskId }, 'an end could not be settled')
            // The agent tells it again over its next link only.
            present(link).close(1013, 'the server can not take this just now')
          })
        }
        live.early = {
          link,
          at: state.clock.monotonic(),
          progressed() {
            this.at = state.clock.monotonic()
            if (live.storedSequence >= lastSequence) settle(complete)
          },
          giveUp() {
            live.incomplete = true
            settle({ ...complete, ...withoutTheRest(complete, live) })
          },
        }
        return acknowledge(link, taskId, live)
      }
      faultPoint('server.settled.before')
      const changed = await state.change(run, [execution.position], (current) =>
        settled(complete, live, current, state.clock.now()),
      )
      faultPoint('server.settled.after')
      if (changed.length === 0) await late(link, complete, run)
      release()
    },
  }
}
