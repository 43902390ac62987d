import { useEffect } from 'preact/hooks'
import type { TaskEvent } from '../../core/protocol/http/events.ts'
import { followStream } from '../event-stream.ts'

/** What is shown of tasks is read again when they change, but not more often than this, in milliseconds. */
const readPause = 1_000

/** Calls `again` when a task of a schedule has begun, changed or ended: of this one, or of any. */
export function useRuns(scheduleId: number | undefined, again: () => void): void {
  useEffect(() => {
    const leave = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        again()
      }, readPause)
    }
    followStream('api/events?type=task', {
      signal: leave.signal,
      onEvent({ event, data }) {
        const of = event === 'task' ? (JSON.parse(data) as TaskEvent).task.scheduleId : undefined
        if (of != null && (scheduleId === undefined || of === scheduleId)) soon()
      },
      // What is read now and then says what is wrong.
    }).catch(() => undefined)
    return () => {
      leave.abort()
      clearTimeout(timer)
    }
  }, [scheduleId])
}
