import type { LogEntry } from '../../core/protocol/http/logs.ts'
import type { Task, TaskResult, TaskSummary } from '../../core/protocol/http/tasks.ts'
import { call } from '../api.ts'
import { followStream } from '../event-stream.ts'
import { type OutputLine, OutputLines } from './output-lines.ts'

export interface TaskView {
  task: TaskSummary
  results: readonly TaskResult[]
  lines: readonly OutputLine[]
  /** Whether there is output before `lines`. */
  isLater: boolean
  isCut: boolean
}

/** Output comes faster than anyone reads: what came within this is shown at once, in milliseconds. */
const drawInterval = 80
/** Pieces of output before the end with which it begins: a log may be longer than a browser takes. */
const firstEntries = 1_500

/**
 * Follows a task to its end (contract §5) and tells `show` how it stands. What the stream says of a host is newer than what
 * was read before it.
 */
export async function followTask(
  taskId: string,
  signal: AbortSignal,
  show: (view: TaskView) => void,
): Promise<void> {
  const path = `api/tasks/${encodeURIComponent(taskId)}`
  const { results: first, ...summary } = await call<Task>('GET', path, { signal })
  const results = new Map(first.map((result) => [result.hostId, result]))
  const output = new OutputLines()
  let task: TaskSummary = summary
  let entries: LogEntry[] = []
  let lastEntry = -1
  let isCut = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const draw = () => {
    timer = undefined
    output.push(entries)
    entries = []
    if (signal.aborted) return
    show({ task, results: [...results.values()], lines: output.lines, isLater: output.isLater, isCut })
  }
  const soon = () => {
    timer ??= setTimeout(draw, drawInterval)
  }
  const end = new AbortController()
  const leave = () => end.abort()
  signal.addEventListener('abort', leave)
  draw()
  await followStream(`${path}/logs?follow=true&tail=${firstEntries}`, {
    signal: end.signal,
    onEvent({ event, data }) {
      isCut = false
      const value = JSON.parse(data) as unknown
      if (event === 'output') {
        const entry = value as LogEntry
        if (entry.id > lastEntry) entries.push(entry)
        lastEntry = Math.max(lastEntry, entry.id)
      } else if (event === 'host') {
        const result = value as TaskResult
        results.set(result.hostId, result)
      } else if (event === 'task') task = value as TaskSummary
      else if (event === 'end') {
        const { results: last, ...final } = value as Task
        task = final
        for (const result of last) results.set(result.hostId, result)
        output.push(entries)
        entries = []
        output.finish()
        leave()
      }
      soon()
    },
    onCut() {
      isCut = true
      soon()
    },
  })
  signal.removeEventListener('abort', leave)
  clearTimeout(timer)
  draw()
}
