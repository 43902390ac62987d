import type {
  ScriptComplete,
  ScriptOutput,
  ScriptPhase,
  ScriptReceived,
} from '../../../core/protocol/messages.ts'
import { LineBudget } from '../../../core/rates.ts'
import { hasId } from '../../../core/tasks/id-set.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import { isoTime } from '../../../disk/clock.ts'
import { signalOf, statusOf, withoutTheRest } from '../../storage/executions/ends.ts'
import type { AgentLink } from '../../storage/ports/cluster.ts'
import type { ReportedEnd, RunningExecution } from '../../storage/ports/executions.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { EngineParts } from '../parts.ts'
import { createEndChecks } from './ends.ts'
import type { EarlyEnd, HostStates, Incoming } from './host-states.ts'

/**
 * Milliseconds between pieces of missing output. Agents send output before the end, so the rest comes soon or
 * never.
 */
const missingOutput = 2 * 60_000

/**
 * The way of a frame about an execution: `find` says which one it belongs to, `append` stores its output,
 * `acknowledge` confirms that to the agent, and `settle` ends it.
 */
export interface Receiver {
  /**
   * Stores a piece of output; resolves when it is durable or dropped. Call in order of arrival. `json` is its JSON
   * text, if it came as JSON.
   */
  output(link: AgentLink, frameId: string, output: ScriptOutput, json?: Uint8Array): Promise<void>
  /** The agent journalled an execution; resolves when that is noted, before it is durable. */
  received(link: AgentLink, frameId: string, received: ScriptReceived): Promise<void>
  /** An execution reached another phase; resolves when that is durable. */
  phase(link: AgentLink, frameId: string, reached: ScriptPhase): Promise<void>
  /** Handles the end of an execution; resolves when it is durable and acknowledged, or waits for output. */
  complete(link: AgentLink, frameId: string, complete: ScriptComplete): Promise<void>
  /** Ends as incomplete executions whose output never arrived; forgets the state of ended ones. */
  sweep(): Promise<void>
}

export function createReceiver(parts: EngineParts, states: HostStates): Receiver {
  const { executions, facts, clock, log } = parts
  const find = createFrameTarget(parts, states)
  const endChecks = createEndChecks(parts)

  /** The host's current link: the one a frame came over may have been replaced. */
  const currentLink = (link: AgentLink) => states.get(link.hostId)?.link ?? link

  function incomingOf(link: AgentLink, { execution, output }: RunningExecution): Incoming {
    const { incoming } = states.of(link.hostId)
    let found = incoming.get(execution.taskId)
    if (!found) {
      const { storedSequence } = output
      found = { writing: 0, appended: Promise.resolve(), storedSequence, acknowledging: false, early: null }
      incoming.set(execution.taskId, found)
    }
    return found
  }

  /** Sends one acknowledgement for all output that became durable at once. */
  function acknowledge(link: AgentLink, taskId: string, incoming: Incoming): void {
    if (!link.hello || incoming.acknowledging) return
    incoming.acknowledging = true
    setImmediate(() => {
      incoming.acknowledging = false
      const now = currentLink(link)
      if (now.hello) now.send('SCRIPT_ACK', { taskId, sequence: incoming.storedSequence })
    })
  }

  function acknowledgeEnd(link: AgentLink, taskId: string): void {
    if (link.hello) link.send('SCRIPT_ACK', { taskId, complete: true })
  }

  /** Stores a result that arrives after a final state in `lateResult` (contract §4). */
  async function late(hostId: number, complete: ScriptComplete): Promise<void> {
    const { taskId, exitCode, status } = complete
    const state = states.of(hostId)
    // LOST adds no information.
    if (status === 'LOST') return
    const known = state.ended(taskId)?.late
    if (known) return known
    const write = async () => {
      const why = await endChecks.reason(taskId, hostId)
      await executions.late(taskId, hostId, {
        status: statusOf(complete, status !== undefined, why).status,
        exitCode,
        signal: signalOf(complete),
        completedAt: isoTime(clock.now()),
      })
    }
    const writing = write()
    // A repeated end waits for the same write.
    state.noteEnded(taskId, writing)
    try {
      await writing
    } catch (error) {
      state.noteEnded(taskId, null)
      throw error
    }
  }

  /** Resolves when the end is durable and the agent may forget the execution. */
  async function settle(link: AgentLink, end: ReportedEnd): Promise<void> {
    const { taskId } = end.complete
    const { hostId } = link
    const ended = {
      ...end,
      contradiction: await endChecks.reason(taskId, hostId),
      timeoutHint: await endChecks.timeoutHint(end.complete),
    }
    const changed = await executions.settle(`${taskId}/${hostId}`, ended)
    parts.ended(changed)
    if (await endChecks.isFetch(taskId)) facts.publish('fetchEnded', { taskId, hostId })
    if (changed.length === 0) await late(hostId, end.complete)
    const state = states.of(hostId)
    state.incoming.delete(taskId)
    state.forget(taskId)
    acknowledgeEnd(link, taskId)
  }

  function settleEarly(incoming: Incoming, early: EarlyEnd, how: Pick<ReportedEnd, 'incomplete'>): void {
    const { link, complete } = early
    incoming.early = null
    settle(link, { ...how, complete }).catch((error: unknown) => {
      log.error({ err: error, taskId: complete.taskId }, 'an end could not be settled')
      // Reconnecting makes the agent repeat the end.
      currentLink(link).close(1013, 'the server cannot take this just now')
    })
  }

  function progressed(incoming: Incoming): void {
    const { early, storedSequence } = incoming
    if (!early) return
    early.at = clock.monotonic()
    if (storedSequence >= (early.complete.lastSequence ?? -1))
      settleEarly(incoming, early, { incomplete: false })
  }

  async function append(
    link: AgentLink,
    { execution }: RunningExecution,
    incoming: Incoming,
    output: ScriptOutput,
    json: Uint8Array | undefined,
  ): Promise<void> {
    const { taskId } = output
    incoming.writing++
    try {
      const stored = await executions.append(execution.id, output, json, link.hello !== null)
      if (stored === null) return
      const isMore = stored > incoming.storedSequence
      incoming.storedSequence = stored
      acknowledge(link, taskId, incoming)
      if (isMore) progressed(incoming)
    } catch (error) {
      log.warn({ err: error, taskId }, 'could not store output')
      // Not acknowledged, so the agent keeps it; a reconnect makes it resend from the last stored piece.
      currentLink(link).close(1013, 'the server cannot store output just now')
    } finally {
      incoming.writing--
    }
  }

  return {
    async received(link, frameId, { taskId, journal }) {
      const instanceId = link.hello?.instanceId
      if (instanceId !== undefined) states.of(link.hostId).noteJournal(instanceId, journal.sequence)
      const found = await find(link, frameId, taskId)
      if (typeof found !== 'string') executions.received(found.execution.id)
    },

    async phase(link, frameId, { taskId, phase }) {
      const found = await find(link, frameId, taskId)
      if (typeof found !== 'string') await executions.reached(found.execution.id, phase)
    },

    async output(link, frameId, output, json) {
      const { taskId, sequence } = output
      const found = await find(link, frameId, taskId)
      if (found === 'refused') return
      if (found === 'ended') {
        if (link.hello) link.send('SCRIPT_ACK', { taskId, sequence })
        return
      }
      const incoming = incomingOf(link, found)
      incoming.appended = append(link, found, incoming, output, json)
      return incoming.appended
    },

    async complete(link, frameId, complete) {
      const { taskId, lastSequence = -1 } = complete
      const found = await find(link, frameId, taskId)
      if (found === 'refused') return
      if (found === 'ended') {
        await late(link.hostId, complete)
        return acknowledgeEnd(link, taskId)
      }
      await states.of(link.hostId).incoming.get(taskId)?.appended
      const { execution, output } = (await executions.find(taskId, link.hostId)) ?? found
      // Output of an execution that is already final (LOST) is dropped, so its late end must not wait for it.
      const isAwaited =
        lastSequence > output.storedSequence && !output.truncated && !isFinal(execution.status)
      if (!link.hello || !isAwaited) return settle(link, { complete, incomplete: false })
      const incoming = incomingOf(link, found)
      incoming.early = { link, complete, at: clock.monotonic() }
      acknowledge(link, taskId, incoming)
    },

    async sweep() {
      const now = clock.monotonic()
      for (const [hostId, state] of states)
        for (const [taskId, incoming] of state.incoming) {
          const running = await executions.find(taskId, hostId)
          const { early, writing } = incoming
          if (!running || isFinal(running.execution.status)) state.incoming.delete(taskId)
          else if (early && early.link === state.link && writing === 0 && now - early.at > missingOutput) {
            const complete = withoutTheRest(early.complete, running.output)
            settleEarly(incoming, { ...early, complete }, { incomplete: true })
          }
        }
    },
  }
}

/** `refused`: an ERROR was sent; `ended`: the execution is final on this host. */
type FrameTarget = (
  link: AgentLink,
  frameId: string,
  taskId: string,
) => Promise<RunningExecution | 'ended' | 'refused'>

/** Whether a host belongs to a task. True for a task of an older server whose results are gone. */
export const hasHost = ({ hostSet }: TaskRecord, hostId: number): boolean =>
  !hostSet || hasId(hostSet, hostId)

function createFrameTarget(parts: EngineParts, states: HostStates): FrameTarget {
  const { executions, store, facts, clock, log } = parts
  const foreign = new LineBudget()

  function refuse(link: AgentLink, refId: string, taskId: string, code: number, message: string): void {
    link.send('ERROR', { code, message, refId })
    link.stray(taskId)
  }

  function notYours(link: AgentLink, frameId: string, taskId: string): void {
    const { agentId, hostId } = link
    const leftOut = foreign.take(agentId, clock.monotonic())
    if (leftOut !== null) log.warn({ agentId, hostId, taskId, leftOut }, "a frame for another host's task")
    facts.publish('foreignFrame', { agentId, hostId, type: 'task', id: taskId })
    refuse(link, frameId, taskId, 403, `task ${taskId} does not run on this host`)
  }

  function ended(link: AgentLink, taskId: string): 'ended' {
    if (!states.of(link.hostId).noteEnded(taskId)) link.stray(taskId)
    return 'ended'
  }

  /** A task that is not running: frames of an ended one are acknowledged and dropped (contract §6). */
  async function notRunning(link: AgentLink, frameId: string, taskId: string): Promise<'ended' | 'refused'> {
    const task = await store.get('tasks', taskId)
    if (!task) {
      refuse(link, frameId, taskId, 404, `no task ${taskId}`)
      return 'refused'
    }
    if (task.status !== 'RUNNING' && hasHost(task, link.hostId)) return ended(link, taskId)
    notYours(link, frameId, taskId)
    return 'refused'
  }

  return async (link, frameId, taskId) => {
    const state = states.of(link.hostId)
    await state.takenUp
    const known = state.ended(taskId)
    if (known?.late) link.stray(taskId)
    if (known) return 'ended'
    const found = await executions.find(taskId, link.hostId)
    if (!found) return notRunning(link, frameId, taskId)
    if (found.execution.sentAt === null || found.execution.overSsh) {
      notYours(link, frameId, taskId)
      return 'refused'
    }
    if (isFinal(found.execution.status)) return ended(link, taskId)
    state.heard.set(taskId, clock.monotonic())
    return found
  }
}
