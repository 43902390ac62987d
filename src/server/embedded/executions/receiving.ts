import { faultPoint } from '#fault-point'
import { settled } from '../../executions/reported-end.ts'
import type { Executions } from '../../seams/executions.ts'
import type { Steps } from './steps.ts'

/** What comes from agents: output, ends, and that they are there. */
export function createReceiving(steps: Steps): Pick<Executions, 'append' | 'settle' | 'heard' | 'silentFor'> {
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
        async write({ stream, sequence, data }) {
          faultPoint('server.output.before')
          await outputs.append(taskId, { hostId, stream, sequence, timestamp: steps.now(), data, json })
          faultPoint('server.output.after')
        },
        isTruncated: () => tasks.execution(id)?.truncated === true,
        async noteTruncated() {
          await steps.change(null, [id], (current) => ({ ...current, truncated: true }))
        },
      })
    },
    settle: (id, end) =>
      steps.change('settled', [id], (current) => settled(end, steps.outputOf(current), current, clock.now())),
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
  }
}
