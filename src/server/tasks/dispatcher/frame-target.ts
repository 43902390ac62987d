import { LineBudget } from '../../../core/rates.ts'
import { hasId } from '../../../core/tasks/id-set.ts'
import { isFinal } from '../../../core/tasks/task.ts'
import type { AgentLink } from '../../storage/ports/agent-link.ts'
import type { RunningExecution } from '../../storage/ports/executions.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { EngineParts } from '../parts.ts'
import type { HostStates } from './host-states.ts'

/** `refused`: an ERROR was sent; `ended`: the execution is final on this host. */
export type FrameTarget = (
  link: AgentLink,
  frameId: string,
  taskId: string,
) => Promise<RunningExecution | 'ended' | 'refused'>

/** Whether a host belongs to a task. True for a task of an older server whose results are gone. */
export const hasHost = ({ hostSet }: TaskRecord, hostId: number): boolean =>
  !hostSet || hasId(hostSet, hostId)

export function createFrameTarget(parts: EngineParts, states: HostStates): FrameTarget {
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
