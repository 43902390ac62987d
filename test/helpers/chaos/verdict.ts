import type { TaskResult } from '../../../src/core/tasks/task.ts'
import type { ChaosTask } from './load.ts'

/** Whether a result of this status may belong to a script that never started. */
const neverStarted = (status: TaskResult['status']) => status === 'SKIPPED' || status === 'CANCELLED'

/** An agent was killed between the frame and its journal: no other process may be sent the script again. */
const isLostOnTheWay = ({ status, error }: TaskResult) =>
  status === 'LOST' && /after it was sent|no longer knows of it/.test(error ?? '')

/** Differences between one host's result and the facts; empty if there are none. */
function faultsOf(task: ChaosTask, result: TaskResult, starts: number): string[] {
  const { script } = task
  const faults: string[] = []
  const heard = task.heard.entries.filter(({ hostId }) => hostId === result.hostId)
  const text = (stream: string) =>
    heard
      .filter((entry) => entry.stream === stream)
      .map(({ data }) => data)
      .join('')
  for (const [at, { sequence }] of heard.entries())
    if (sequence !== at) {
      faults.push(`sequence ${sequence} is at position ${at}`)
      break
    }
  if (starts > 1) faults.push(`started ${starts} times`)
  if (isLostOnTheWay(result)) {
    if (heard.length > 0) faults.push('output, although the agent did not know the script')
    return faults
  }
  if (result.duration !== null && result.duration < 0) faults.push(`duration ${result.duration}`)
  if (starts === 0) {
    if (!neverStarted(result.status)) faults.push(`${result.status} without a start: ${result.error}`)
    if (heard.length > 0) faults.push('output without a start')
    return faults
  }
  if (result.status === 'SKIPPED') faults.push('SKIPPED although it started')
  if (!result.outputComplete) faults.push('outputComplete is false')
  if (script.isCancelled) {
    if (result.status !== 'CANCELLED') faults.push(`${result.status} instead of CANCELLED: ${result.error}`)
    if (!script.stdout.startsWith(text('stdout'))) faults.push('output that it never wrote')
    return faults
  }
  for (const key of ['status', 'exitCode', 'signal'] as const)
    if (result[key] !== script.end[key])
      faults.push(`${key} ${result[key]} instead of ${script.end[key]}: ${result.error}`)
  for (const stream of ['stdout', 'stderr'] as const) {
    const [got, wanted] = [text(stream), script[stream]]
    if (got !== wanted) faults.push(`${stream}: ${differ(got, wanted)}`)
    if (result[`${stream}Bytes`] !== Buffer.byteLength(wanted))
      faults.push(`${stream}Bytes ${result[`${stream}Bytes`]} instead of ${Buffer.byteLength(wanted)}`)
  }
  return faults
}

function differ(got: string, wanted: string): string {
  let at = 0
  while (at < got.length && got[at] === wanted[at]) at += 1
  const [here, there] = [got.slice(at, at + 40), wanted.slice(at, at + 40)]
  return `${got.length} characters for ${wanted.length}, from ${at} on ${JSON.stringify(here)} for ${JSON.stringify(there)}`
}

/** SEQUENTIAL and ROLLING stop at a failure; the skipped hosts are certain only if every host must fail. */
function skippedWrongly(task: ChaosTask): string[] {
  const { strategy, maxFailures } = task.options
  const results = task.ended?.results ?? []
  // A lost execution also counts as a failure, at a random place.
  if (results.some(isLostOnTheWay)) return []
  const skipped = results.filter(({ status }) => status === 'SKIPPED').length
  const fails = !task.script.isCancelled && task.script.end.status !== 'SUCCESS'
  const stops = fails && strategy !== 'PARALLEL' && maxFailures === undefined
  // A list of batches begins with one host.
  const expected = stops ? results.length - 1 : 0
  return skipped === expected ? [] : [`${skipped} SKIPPED instead of ${expected}`]
}

/** `starts` counts the lines that each script has written, by the path of the script. */
export function verdict(task: ChaosTask, startsOf: (taskId: string, hostId: number) => number): string[] {
  const name = `${task.taskId} ${task.script.name} ${task.options.strategy}`
  const results = task.ended?.results ?? []
  const faults = results.flatMap((result) =>
    faultsOf(task, result, startsOf(task.taskId, result.hostId)).map(
      (fault) => `${result.hostname}: ${fault}`,
    ),
  )
  if (results.length !== task.hostIds.length) faults.push(`${results.length} results`)
  return [...faults, ...skippedWrongly(task)].map((fault) => `${name}: ${fault}`)
}

/** Counts that a run has reached, by their names in messages. */
export type Reached = Readonly<Record<string, number>>

/** Counts that a run did not reach: without a minimum, a run in which nothing happened would have no faults either. */
export function shortOf(reached: Reached, minima: Reached): string[] {
  return Object.entries(minima).flatMap(([what, least]) => {
    const count = reached[what] ?? 0
    return count >= least ? [] : [`${what}: ${count} instead of at least ${least}`]
  })
}
