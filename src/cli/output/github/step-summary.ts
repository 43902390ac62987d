import { appendFileSync, statSync } from 'node:fs'
import type { Task } from '../../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../../core/selector/nodeset.ts'
import type { TaskResult } from '../../../core/tasks/task.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { showDuration } from '../../text/time.ts'
import type { Failure } from '../outcome.ts'

/** GitHub refuses the summary of a step that is larger, in bytes. */
const largestSummary = 1024 * 1024
/** A node set of hosts without a pattern in their names is cut here, in characters. */
const longestCell = 2000

/** Text as a cell shows it, character for character: nothing in it is Markdown, HTML or the end of a cell. */
function cell(text: string): string {
  const line = sanitizeLine(text)
  const cut = line.length > longestCell ? `${line.slice(0, longestCell)}...` : line
  return cut.replace(/[^A-Za-z0-9 .,;()%/+=-]/gu, (character) => `&#${character.codePointAt(0)};`)
}

const namesOf = (results: readonly TaskResult[]) => foldNodeset(results.map(({ hostname }) => hostname))

/** How the task went, as a table in Markdown: whoever failed by reason, then whoever did not. */
export function stepSummary(task: Task, failures: readonly Failure[], room: number): string {
  const took = task.duration === null ? '' : ` in ${showDuration(task.duration)}`
  const rows: [string, string][] = failures.map(({ reason, results }) => [namesOf(results), reason])
  const good = task.results.filter(({ status }) => status === 'SUCCESS')
  if (good.length > 0) rows.push([namesOf(good), 'SUCCESS'])
  const head = `### ${cell(task.scriptName ?? 'rsm exec')}: ${task.status}

${task.hostCount} host${task.hostCount === 1 ? '' : 's'}${cell(took)}, task ${cell(task.taskId)}

| Hosts | Result |
| --- | --- |
`
  let text = head
  let left = room - Buffer.byteLength(head)
  for (const [at, [hosts, result]] of rows.entries()) {
    const row = `| ${cell(hosts)} | ${cell(result)} |\n`
    const cut = `\n${rows.length - at} more rows left out\n`
    left -= Buffer.byteLength(row)
    if (left < Buffer.byteLength(cut)) return `${text}${cut}\n`
    text += row
  }
  return `${text}\n`
}

/** Appends it to the file that GitHub Actions names; without one nothing is written. */
export function appendStepSummary(path: string | undefined, task: Task, failures: readonly Failure[]): void {
  if (path === undefined || path === '') return
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  const text = stepSummary(task, failures, largestSummary - size)
  if (size + Buffer.byteLength(text) <= largestSummary) appendFileSync(path, text)
}
