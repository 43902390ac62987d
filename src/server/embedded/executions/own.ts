import { ended } from '../../executions/transitions.ts'
import type { Executions } from '../../seams/executions.ts'
import type { Steps } from './steps.ts'

/** What the server itself does on hosts, over SSH: no link takes it. */
export function createOwn(steps: Steps): Pick<Executions, 'begin' | 'end'> {
  return {
    /** The record is written before the host is spoken to: what a crash cuts is LOST, and not begun again. */
    begin(by, ids) {
      const at = steps.now()
      return steps.changeOwned(by, 'sent', ids, (current) =>
        current.overSsh && current.dueAt !== null && steps.isWaiting(current)
          ? { ...current, status: 'RUNNING', sentAt: at, startedAt: at }
          : null,
      )
    },

    end(by, id, { status, exitCode, error }) {
      return steps.changeOwned(by, 'settled', [id], (current) => {
        if (current.status !== 'RUNNING' || !current.overSsh) return null
        const { stdoutBytes, stderrBytes, truncated, incomplete } = steps.outputOf(current)
        const last = ended(current, status, steps.now(), error)
        const duration = Date.parse(last.completedAt ?? '') - Date.parse(last.startedAt ?? '')
        return {
          ...last,
          exitCode,
          duration,
          stdoutBytes,
          stderrBytes,
          truncated,
          outputComplete: !incomplete,
        }
      })
    },
  }
}
