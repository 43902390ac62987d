import { faultPoint } from '#fault-point'
import { settled } from '../../executions/reported-end.ts'
import { asReached, asTruncated } from '../../executions/transitions.ts'
import { gateOf } from '../../output-line.ts'
import type { Executions } from '../../ports/executions.ts'
import type { Steps } from './steps.ts'

/** What comes from agents: output and ends. */
export function createReceiving(steps: Steps): Pick<Executions, 'append' | 'reached' | 'settle'> {
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
          await steps.change(null, [id], asTruncated)
        },
      })
    },
    async reached(id, phase) {
      const execution = tasks.execution(id)
      if (execution) await steps.change(null, [id], asReached(phase, tasks.of(execution).phases))
    },
    settle: (id, end) =>
      steps.change('settled', [id], (current, output) => settled(end, output, current, clock.now())),
  }
}
