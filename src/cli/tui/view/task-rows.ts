import { isFailure, type TaskResult } from '../../../core/tasks/task.ts'
import { silentLines } from '../../task/silent-hosts.ts'
import { type TaskState, tallyOf } from '../../task/task-state.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { withOwnMark } from '../../text/screen.ts'
import { widthOf } from '../../text/width.ts'
import type { LogReader } from '../log/reader.ts'
import { partsOf } from '../log/viewport.ts'
import type { Row, Span, Style } from '../screen/screen.ts'
import { type Focus, fit, type Keys, progressRow, rowOf, spread } from './drawing.ts'
import { taskGlyphs } from './fleet-rows.ts'
import { type HostRow, shortTime } from './host-pane.ts'
import type { LogPane } from './log-pane.ts'

const leastName = 12
const mostNoteRows = 3

export function taskTitle(state: TaskState, cols: number, now: number): Row {
  const { summary, taskId } = state
  if (summary === null) return rowOf(cols, { text: ` task ${taskId}`, style: { bold: true } })
  const { scriptName, firstLine, strategy, batchSize, createdBy, status } = summary
  const batches = batchSize === null ? '' : ` by ${[batchSize].flat().join(', ')}`
  const back: Span[] = [
    { text: `  ${status}`, style: { ...taskGlyphs[status].style, bold: true } },
    { text: `  ${shortTime(state.elapsed(now))} ` },
  ]
  // The id is for copying, so the name gives way to it, and the options to the name.
  const room = cols - widthOf([...back.map(({ text }) => text), ' ', taskId].join(''))
  const options = `  ${strategy}${batches}, by ${sanitizeLine(createdBy)}  `
  const how = room - widthOf(options) < leastName ? '  ' : options
  const name = sanitizeLine(scriptName ?? withOwnMark(firstLine ?? 'command'))
  const shown = fit(name, Math.max(1, Math.min(widthOf(name), room - widthOf(how))))
  const front: Span[] = [
    { text: ` ${shown}`, style: { bold: true } },
    { text: how },
    { text: taskId, style: { dim: true } },
  ]
  return spread(cols, front, back)
}

export function taskProgress(state: TaskState, cols: number): Row {
  const counted = state.counts()
  const { done, failed, running, pending, stopped, success } = tallyOf(counted)
  const all = state.summary?.hostCount ?? state.results.size
  const counts: Span[] = [{ text: ` ${done}/${all} done`, style: { bold: true } }]
  const add = (count: number, what: string, style: Style) => {
    if (count > 0) counts.push({ text: `  ${count} ${what}`, style })
  }
  add(failed, 'failed', { fg: 'red', bold: true })
  add(running, 'running', { fg: 'cyan' })
  add(pending, 'pending', { dim: true })
  add(counted.CANCELLED, 'cancelled', { fg: 'yellow' })
  add(counted.SKIPPED, 'skipped', { fg: 'yellow' })
  add(success, 'success', { fg: 'green' })
  counts.push({ text: ' ' })
  const parts = [
    { count: failed, style: { fg: 'red' } },
    { count: stopped, style: { fg: 'yellow' } },
    { count: success, style: { fg: 'green' } },
  ] as const
  return progressRow(cols, counts, parts, all)
}

/** Title of the log: its host or all hosts, and active filters. */
export function logTitle(log: LogPane, row: HostRow | undefined): Span[] {
  const title: Span[] = [{ text: ` ${row === undefined ? 'all hosts' : row.name} ` }]
  if (row !== undefined) title.push({ text: `${row.state} `, style: row.style })
  if (log.isFolded) title.push({ text: 'equal output once ', style: { fg: 'yellow' } })
  if (log.stream !== null) title.push({ text: `${log.stream} only `, style: { fg: 'yellow' } })
  if (!log.viewport.wrap) title.push({ text: 'not wrapped ' })
  if (log.sought !== null) title.push({ text: `/${log.sought} ` })
  return title
}

export function logState(log: LogPane, reader: LogReader, isRunning: boolean): Span[] {
  const { searching } = reader
  if (searching !== null)
    return [{ text: ` searching ${Math.round(searching * 100)} %, Esc stops `, style: { fg: 'yellow' } }]
  if (log.isFolded) return [{ text: ' b goes back ', style: { dim: true } }]
  if (!reader.isLoaded) return [{ text: ' reading... ' }]
  if (!log.viewport.isFollowing) return [{ text: ' F follows ', style: { fg: 'yellow' } }]
  return [{ text: isRunning ? ' following ' : ' end ', style: { dim: true } }]
}

/** Error of a host's result; without a host, the hosts that the task waits for. */
export function noteRows(results: ReadonlyMap<number, TaskResult>, hostId: number, width: number): Span[][] {
  const result = results.get(hostId)
  const lines = result === undefined ? silentLines(results.values()) : [errorOf(result)]
  const isBad = result !== undefined && isFailure(result.status)
  const style = { fg: isBad ? 'red' : 'yellow', bold: true } as const
  const parts = lines.filter((line) => line !== '').flatMap((line) => partsOf(line, Math.max(1, width - 2)))
  return parts.slice(0, mostNoteRows).map((part) => [{ text: `  ${part}`, style }])
}

function errorOf({ error, rollback }: TaskResult): string {
  const errorLines = error === null ? [] : [sanitizeLine(error)]
  return [...errorLines, ...(rollback?.status === 'SUCCESS' ? ['rolled back'] : [])].join('; ')
}

export const taskHelp: Keys = [
  ['Up Down j k PgUp PgDn g G', 'move in the active pane'],
  ['Tab Enter', 'switch panes'],
  ['f', 'filter hosts by name or state'],
  ['/ n N', 'search the log; next, previous match'],
  ['e E', 'next, previous failed host; in the log, stderr'],
  ['s', 'show both streams, stdout, stderr'],
  ['b', 'fold equal output; b shows the log again'],
  ['w', 'toggle wrapping; if off, Left and Right move'],
  ['F End', 'follow the log again'],
  ['y', 'plain text, to select and copy'],
  ['t', 'a terminal on the chosen host'],
  ['c', 'cancel the task'],
  ['r', 'retry on hosts that did not succeed'],
  ['Esc', 'clear search, filter; back to the fleet'],
  ['Ctrl-L Ctrl-Z', 'redraw; suspend'],
  ['q Ctrl-C', 'quit: a running task keeps running'],
]

/** Most useful first: the rest is shown if there is room. */
export function taskKeys(focus: Focus, isRunning: boolean): Keys {
  return [
    ['q', 'quit'],
    ['?', 'help'],
    ['/', 'search'],
    ['e', focus === 'left' ? 'next failed' : 'next stderr'],
    isRunning ? ['c', 'cancel'] : ['r', 'retry'],
    ['t', 'terminal'],
    ['Tab', focus === 'left' ? 'log' : 'hosts'],
    ['b', 'fold'],
    ['s', 'stream'],
    ['w', 'wrap'],
    ['F', 'follow'],
    ['y', 'copy'],
    ['f', 'filter'],
    ['Esc', 'fleet'],
  ]
}
