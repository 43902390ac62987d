import { phaseMark } from '../../cli/output/lines.ts'
import { TaskState } from '../../cli/task/task-state.ts'
import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import { mendable } from '../../core/errors.ts'
import type { CarriedBytes, LogEntry, LogPage } from '../../core/protocol/http/logs.ts'
import type { Task, TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { pause } from '../../net/backoff.ts'
import { call, errorText, followStream, send, withQuery } from '../api.ts'
import { save } from '../parts/browser.ts'
import { type HostLine, HostLines, type OutputLine, OutputLines } from './output-lines.ts'

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

/** Most characters that a browser can save; the command line has no limit. */
const mostSaved = 256 * 1024 * 1024
const pageSize = 500

interface LogRange {
  hostId?: number | undefined
  after?: number
  signal: AbortSignal
}

export async function download(
  taskId: string,
  host: { hostId: number; hostname: string } | undefined,
  signal: AbortSignal,
): Promise<void> {
  const file =
    host === undefined ? await taskOutput(taskId, signal) : await hostOutput(taskId, host.hostId, signal)
  save(file, [taskId, ...(host === undefined ? [] : [inFileName(host.hostname)])].join('-') + '.txt')
}

/** Output of all hosts, each line prefixed with its host. */
async function taskOutput(taskId: string, signal: AbortSignal): Promise<Blob> {
  const open = new HostLines()
  const parts: string[] = []
  let size = 0
  const add = (lines: readonly HostLine[]) => {
    if (lines.length === 0) return
    const text = lines.map((line) => `${headOf(line.about)}${sanitize(line.text)}\n`).join('')
    parts.push(text)
    size += text.length
    if (size > mostSaved) throw new Error(`Too much output for a browser: use rsm logs ${taskId}`)
  }
  for await (const { entries } of logPages(taskId, { signal }))
    for (const entry of entries) add(open.push(entry))
  add(open.finish())
  return new Blob(parts, { type: 'text/plain' })
}

/** `web1: `, `web1 [verify]: `. */
function headOf({ hostname, phase }: HostLine['about']): string {
  return `${sanitizeLine(hostname)}${phase === undefined ? '' : ` ${phaseMark(phase)}`}: `
}

/** Output of one host, byte for byte as stored. */
async function hostOutput(taskId: string, hostId: number, signal: AbortSignal): Promise<Blob> {
  const path = withQuery(`api/tasks/${encodeURIComponent(taskId)}/logs`, { hostId })
  return (await send('GET', path, { headers: { accept: 'text/plain' }, signal })).blob()
}

/** Part of a file name: replaces special characters with `_`. */
export const inFileName = (text: string) => text.replaceAll(/[^A-Za-z0-9._-]/g, '_')

/** The current log, page by page: entries, and the cursor after them. */
export async function* logPages(
  taskId: string,
  { hostId, after = 0, signal }: LogRange,
): AsyncGenerator<{ entries: readonly LogEntry[]; next: number }> {
  const path = `api/tasks/${encodeURIComponent(taskId)}/logs`
  for (;;) {
    const query = { hostId, after, size: pageSize }
    const { entries, next } = await call<LogPage>('GET', withQuery(path, query), { signal })
    if (entries.length === 0 && next === after) return
    yield { entries, next }
    after = next
  }
}
