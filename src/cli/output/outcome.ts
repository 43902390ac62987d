import { constants } from 'node:os'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { Counts, TaskResult } from '../../core/tasks/task.ts'
import { timedOutExit } from '../command/failure.ts'
import { sharedReason, withoutSpans } from '../hosts/standing.ts'
import { countsText } from '../task/task-state.ts'
import { counted } from '../text/amounts.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { showDuration } from '../text/time.ts'

const unreachableExit = 255
const cancelledExit = 130

/** Exit codes by status; 1 for others. */
const exits: Partial<Record<TaskResult['status'], number>> = {
  SUCCESS: 0,
  TIMEOUT: timedOutExit,
  UNREACHABLE: unreachableExit,
  LOST: unreachableExit,
  CANCELLED: cancelledExit,
}

function exitOfHost({ status, exitCode }: TaskResult): number {
  if (status !== 'FAILED') return exits[status] ?? 1
  // The last verify attempt timed out.
  if (exitCode === -1) return timedOutExit
  return exitCode === null || exitCode < 1 || exitCode > 255 ? 1 : exitCode
}

/** Exit code of a finished task (contract §9). */
export function exitOfTask(task: Task): number {
  if (task.status === 'CANCELLED') return cancelledExit
  const [only] = task.results
  if (task.results.length === 1 && only !== undefined) return exitOfHost(only)
  return task.status === 'SUCCESS' && task.results.every((result) => result.status === 'SUCCESS') ? 0 : 1
}

/** Whether the result already says the state of its host (`web1 is OFFLINE: never heard`). */
export function tellsHostState({ error, hostname }: Pick<TaskResult, 'error' | 'hostname'>): boolean {
  return error?.startsWith(`${hostname} is `) === true
}

/** Explains exit code 128 + N: shells and scripts use it for death by signal N. */
function codeWords(code: number | null): string {
  const [name] = Object.entries(constants.signals).find(([, number]) => number + 128 === code) ?? []
  return name === undefined ? '' : ` (128 + ${name})`
}

/** `timeout` in seconds. */
export function reasonOf(result: TaskResult, timeout: number): string {
  const error = result.error === null ? '' : `: ${sanitizeLine(result.error)}`
  const undone = result.rollback?.status === 'SUCCESS' ? '; rolled back' : ''
  const partial = `${undone}${result.outputComplete ? '' : ' (output incomplete)'}`
  if (result.status === 'TIMEOUT' && timeout > 0) return `TIMEOUT after ${timeout} s${error}${partial}`
  if (result.status !== 'FAILED') return `${result.status}${error}${partial}`
  const how = result.signal === null ? codeWords(result.exitCode) : ` (${sanitizeLine(result.signal)})`
  return `FAILED, exit ${result.exitCode ?? 'unknown'}${how}${error}${partial}`
}

/** Removes the host's name from its reason, so that `web1 is OFFLINE` and `web2 is OFFLINE` fold into one. */
function withoutOwnName(result: TaskResult): TaskResult {
  if (!tellsHostState(result) || result.error === null) return result
  return { ...result, error: result.error.slice(`${result.hostname} is `.length) }
}

export interface Failure {
  readonly reason: string
  readonly results: readonly TaskResult[]
}

/** Whether the hosts did not run because of others, which is not a failure of their own. */
const spared = (results: readonly TaskResult[]) =>
  results.every(({ status }) => status === 'SKIPPED' || status === 'CANCELLED')

/** Failures folded by reason: actual failures before hosts that did not run, most hosts first. */
export function foldFailures(task: Task): Failure[] {
  const alike = new Map<string, TaskResult[]>()
  const reasonFor = (result: TaskResult) => reasonOf(withoutOwnName(result), task.timeout)
  for (const result of task.results) {
    if (result.status === 'SUCCESS') continue
    const key = withoutSpans(reasonFor(result))
    const others = alike.get(key)
    if (others === undefined) alike.set(key, [result])
    else others.push(result)
  }
  return [...alike.values()]
    .sort((a, b) => Number(spared(a)) - Number(spared(b)) || b.length - a.length)
    .map((results) => {
      const [only] = results
      const isAlone = only !== undefined && results.length === 1
      return {
        reason: isAlone ? reasonOf(only, task.timeout) : sharedReason(results.map(reasonFor)),
        results,
      }
    })
}

export function failureLines(failures: readonly Failure[]): string[] {
  return failures.map(
    ({ reason, results }) =>
      `${sanitizeLine(foldNodeset(results.map(({ hostname }) => hostname)))}: ${reason}`,
  )
}

/** The host's output was cut; the log says where. */
export const cutOutput = 'its output exceeded the limit; the middle is left out'

/** `web[1-2]: its output …`, if any output was cut. */
export function cutLines({ results }: Task): string[] {
  const cut = results.filter(({ truncated }) => truncated).map(({ hostname }) => hostname)
  return cut.length === 0 ? [] : [`${sanitizeLine(foldNodeset(cut))}: ${cutOutput}`]
}

/** `web1: 4711 sh still holds …`; one line for hosts that left the same programs running. */
export function warningLines({ results }: Task): string[] {
  const alike = new Map<string, TaskResult[]>()
  for (const result of results) {
    if (result.status !== 'SUCCESS' || result.error === null) continue
    const programs = result.survivors?.map(({ command }) => command).join(', ')
    const key = programs ? `${programs}: still running with the output open` : result.error
    alike.set(key, [...(alike.get(key) ?? []), result])
  }
  return [...alike].map(([key, hosts]) => {
    const said = hosts.length === 1 ? hosts[0]?.error : key
    return sanitizeLine(`${foldNodeset(hosts.map(({ hostname }) => hostname))}: ${said}`)
  })
}

/** `2 hosts changed`, or would change, for a copy; nothing for other tasks. */
export function changedLines({ copy, results }: Task): string[] {
  if (copy === null) return []
  const { length } = results.filter(({ changed }) => changed === true)
  const hosts = length === 0 ? 'no host' : counted(length, 'host')
  return [`${hosts} ${copy.check === undefined ? 'changed' : 'would change'}`]
}

/** `3 hosts: 2 SUCCESS, 1 FAILED in 1.2 s (task 01J…)`. */
export function summaryLine(task: Task): string {
  const [only, ...others] = task.results
  const counts: Partial<Counts> = {}
  for (const { status } of task.results) counts[status] = (counts[status] ?? 0) + 1
  const outcome = only !== undefined && others.length === 0 ? only.status : countsText(counts)
  const hosts = counted(task.hostCount, 'host')
  const took = task.duration === null ? '' : ` in ${showDuration(task.duration)}`
  return `${hosts}: ${outcome}${took} (task ${task.taskId})`
}
