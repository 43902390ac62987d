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
  /** Whether there is output before `lines`. */
  isLater: boolean
  isCut: boolean
  /** Of hosts that get or send a file: so many bytes of it have passed. */
  carried: ReadonlyMap<number, number>
}

/** Output comes faster than anyone reads: what came within this is shown at once, in milliseconds. */
const drawInterval = 80
/** Pieces of output before the end with which it begins: a log may be longer than a browser takes. */
const firstEntries = 1_500
/** Before a read that failed is made again, in milliseconds. */
const readPause = 1_000

/**
 * Follows a task to its end (contract §5) and tells `show` how it stands, and `say` why it can't be read at present. A stream tells what changes from its first event
 * on, so the task is read once more behind that: what became of its hosts before, or while there was no stream, is in there.
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
