import { BoundedMap } from '../../../core/bounded-map.ts'
import type {
  ScriptComplete,
  ScriptOutput,
  ScriptPhase,
  ScriptReceived,
} from '../../../core/protocol/messages.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import { isoTime } from '../../../disk/clock.ts'
import { fetchedId } from '../../files/files.ts'
import { signalOf, statusOf, withoutTheRest } from '../../storage/executions/ends.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { ReportedEnd, RunningExecution } from '../../storage/ports/executions.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { EngineParts } from '../parts.ts'
import { createFrameTarget } from './frame-target.ts'
import type { EarlyEnd, HostStates, Incoming } from './host-states.ts'

/**
 * Milliseconds between pieces of missing output. Agents send output before the end, so the rest comes soon or
 * never.
 */
const missingOutput = 2 * 60_000

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

/** Cache limit; the cache lets the ends of a large task read it once. */
const maxCached = 1000

function createEndChecks({ store }: Pick<EngineParts, 'store'>) {
  const tasks = new BoundedMap<string, { readonly isFetch: boolean; readonly hints: TimeoutHints }>(maxCached)

  async function knownOf(taskId: string) {
    const known = tasks.get(taskId)
    if (known !== undefined) return known
    const task = await store.get('tasks', taskId)
    const found = { isFetch: task?.type === 'FETCH', hints: hintsOf(task) }
    tasks.set(taskId, found)
    return found
  }

  const isFetch = async (taskId: string) => (await knownOf(taskId)).isFetch

  return {
    isFetch,
    async timeoutHint({ taskId, exitCode, verify, rollback }: ScriptComplete): Promise<string | null> {
      const { hints } = await knownOf(taskId)
      const of = [
        exitCode === -1 && !verify ? hints.script : null,
        verify?.status === 'TIMEOUT' ? hints.verify : null,
        rollback?.status === 'TIMEOUT' ? hints.rollback : null,
      ]
      return of.filter((hint) => hint !== null).join('; ') || null
    },
    /** Why a reported SUCCESS cannot be true; null if it may be. */
    async reason(taskId: string, hostId: number): Promise<string | null> {
      if (!(await isFetch(taskId))) return null
      const isHere = (await store.get('files', fetchedId(taskId, hostId)))?.isComplete === true
      return isHere ? null : 'its agent reports SUCCESS, but has not sent the complete file'
    },
  }
}

interface TimeoutHints {
  readonly script: string | null
  readonly verify: string | null
  readonly rollback: string | null
}

function hintsOf(task: TaskRecord | undefined): TimeoutHints {
  const hint = (
    what: Pick<TaskRecord, 'timeout' | 'hasDefaultTimeout'> | null | undefined,
    advice: string,
  ) => (what?.hasDefaultTimeout === true ? `${what.timeout} s is the default timeout; ${advice}` : null)
  const { gates, scheduleId } = task ?? {}
  return {
    script: hint(task, `give ${scheduleId === undefined ? '' : 'its schedule '}a longer one (-u)`),
    verify: hint(gates?.verify, 'give the verify script a longer one'),
    rollback: hint(gates?.rollback, 'give the rollback script a longer one'),
  }
}
