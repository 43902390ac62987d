import { TaskState } from '../../cli/task/task-state.ts'
import { mendable } from '../../core/errors.ts'
import type { CarriedBytes, LogEntry } from '../../core/protocol/http/logs.ts'
import type { Task, TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { pause } from '../../net/backoff.ts'
import { call, errorText, followStream } from '../api.ts'
import { type OutputLine, OutputLines } from './output-lines.ts'

export interface TaskView {
  task: TaskSummary
  results: readonly TaskResult[]
  lines: readonly OutputLine[]
  isLater: boolean
  isCut: boolean
  /** Transferred bytes of each host's file, by host ID. */
  carried: ReadonlyMap<number, number>
}

/** Milliseconds between two redraws, because output arrives faster than anyone reads. */
const drawInterval = 80
/** Log entries loaded from the end at first, because a log may exceed what a browser can hold. */
const firstEntries = 1_500
/** Milliseconds before a failed read is retried. */
const readPause = 1_000

/**
 * Follows a task to its end (contract §5); calls `show` with its state, and `say` while it cannot be read.
 * Reads the task once more after the first event of each stream, because the stream has only changes since
 * its start.
 */
export async function followTask(
  taskId: string,
  signal: AbortSignal,
  show: (view: TaskView) => void,
  say: (fault: string) => void,
): Promise<void> {
  const path = `api/tasks/${encodeURIComponent(taskId)}`
  const state = new TaskState(taskId)
  const output = new OutputLines()
  const carried = new Map<number, number>()
  let entries: LogEntry[] = []
  let lastEntry = -1
  let isCut = false
  let isToRead = true
  let timer: ReturnType<typeof setTimeout> | undefined
  const draw = () => {
    timer = undefined
    output.push(entries)
    entries = []
    if (signal.aborted || state.summary === null) return
    const task = { ...state.summary, counts: state.counts() }
    const { lines, isLater } = output
    show({ task, results: [...state.results.values()], lines, isLater, isCut, carried })
  }
  const soon = () => {
    timer ??= setTimeout(draw, drawInterval)
  }
  const end = new AbortController()
  const stop = () => end.abort()
  signal.addEventListener('abort', stop)

  async function read(): Promise<void> {
    while (!end.signal.aborted)
      try {
        state.read(await call<Task>('GET', path, { signal: end.signal }))
        say('')
        return draw()
      } catch (error) {
        if (end.signal.aborted) return
        if (!mendable(error)) throw error
        say(`${errorText(error)}; trying again …`)
        await pause(readPause, end.signal)
      }
  }
  let fault: unknown
  const readAgain = () => {
    read().catch((error: unknown) => {
      fault = error
      stop()
    })
  }

  try {
    await read()
    await followStream(`${path}/logs?follow=true&tail=${firstEntries}`, {
      signal: end.signal,
      onEvent({ event, data }) {
        isCut = false
        const value = JSON.parse(data) as unknown
        if (event === 'output') {
          const entry = value as LogEntry
          if (entry.id > lastEntry) entries.push(entry)
          lastEntry = Math.max(lastEntry, entry.id)
        } else if (event === 'host') state.result(value as TaskResult)
        else if (event === 'task') state.change(value as TaskSummary)
        else if (event === 'carried')
          for (const { hostId, bytes } of (value as CarriedBytes).hosts) carried.set(hostId, bytes)
        else if (event === 'end') {
          state.read(value as Task)
          output.push(entries)
          entries = []
          output.finish()
          stop()
        }
        if (isToRead) readAgain()
        isToRead = false
        soon()
      },
      onCut() {
        isCut = true
        isToRead = true
        soon()
      },
    })
    if (fault !== undefined) throw fault
  } finally {
    signal.removeEventListener('abort', stop)
    stop()
    clearTimeout(timer)
    draw()
  }
}
