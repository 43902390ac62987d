import { type TaskState, tallyOf } from '../../task/task-state.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { withOwnMark } from '../../text/screen.ts'
import { widthOf } from '../../text/width.ts'
import type { Row, Span, Style } from '../screen/screen.ts'
import { fit, rowOf, spread } from './fit.ts'
import { taskLooks } from './fleet-rows.ts'
import { shortTime } from './host-row.ts'
import { progressRow } from './layout.ts'

const leastName = 12

export function taskTitle(state: TaskState, cols: number, now: number): Row {
  const { summary, taskId } = state
  if (summary === null) return rowOf(cols, { text: ` task ${taskId}`, style: { bold: true } })
  const { scriptName, firstLine, strategy, batchSize, createdBy, status } = summary
  const batches = batchSize === null ? '' : ` by ${[batchSize].flat().join(', ')}`
  const back: Span[] = [
    { text: `  ${status}`, style: { ...taskLooks[status].style, bold: true } },
    { text: `  ${shortTime(state.elapsed(now))} ` },
  ]
  // The id is for copying, so that the name gives way to it, and before the name how it runs.
  const room = cols - widthOf([...back.map(({ text }) => text), ' ', taskId].join(''))
  const told = `  ${strategy}${batches}, by ${sanitizeLine(createdBy)}  `
  const how = room - widthOf(told) < leastName ? '  ' : told
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
