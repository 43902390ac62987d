import { LineBudget } from '../../../core/line-budget.ts'
import { isFinal } from '../../../core/task/task.ts'
import type { RunningExecution } from '../../seams/executions.ts'
import type { AgentLink } from '../agent-link.ts'
import type { EngineParts } from '../parts.ts'
import type { HostLanes } from './host-lanes.ts'

/** The execution that a frame of an agent is about. Without one, the frame is answered; `ended` says that the task had ended. */
export type FrameTarget = (
  link: AgentLink,
  frameId: string,
  taskId: string,
) => Promise<RunningExecution | 'ended' | 'refused'>

export function createFrameTarget(parts: EngineParts, lanes: HostLanes): FrameTarget {
  const { executions, store, results, facts, clock, log } = parts
  const foreign = new LineBudget()
  const refuse = (link: AgentLink, code: number, message: string, refId: string) =>
    link.send('ERROR', { code, message, refId })

  function notYours(link: AgentLink, frameId: string, taskId: string): void {
    const { agentId, hostId } = link
    const leftOut = foreign.take(agentId, clock.monotonic())
    if (leftOut !== null) log.warn({ agentId, hostId, taskId, leftOut }, "a frame for another host's task")
    facts.publish('foreignFrame', { agentId, hostId, type: 'task', id: taskId })
    refuse(link, 403, `task ${taskId} does not run on this host`, frameId)
  }

  /** A frame for a task that does not run: of an ended one it is acknowledged and dropped (contract §6). */
  async function notRunning(link: AgentLink, frameId: string, taskId: string): Promise<'ended' | 'refused'> {
    const task = await store.get('tasks', taskId)
    if (!task) {
      refuse(link, 404, `no task ${taskId}`, frameId)
      return 'refused'
    }
    const isIts = task.status === 'RUNNING' ? false : await results.has(taskId, link.hostId)
    if (isIts !== false) return 'ended'
    notYours(link, frameId, taskId)
    return 'refused'
  }

  return async (link, frameId, taskId) => {
    await lanes.get(link.hostId)?.takenUp
    const found = await executions.find(taskId, link.hostId)
    if (!found) return notRunning(link, frameId, taskId)
    if (found.execution.sentAt === null || found.execution.overSsh) {
      notYours(link, frameId, taskId)
      return 'refused'
    }
    if (!isFinal(found.execution.status)) lanes.of(link.hostId).heard.set(taskId, clock.monotonic())
    return found
  }
}
