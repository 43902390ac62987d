import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import type { ResultStatus, Stream, TaskResult } from '../../core/tasks/task.ts'
import { sanitize, sanitizeLine } from '../text/sanitize.ts'
import { BoundedText, keptPerHost } from './bounded-text.ts'
import type { FormatOptions, OutputFormat, Sink } from './format.ts'
import { PhaseHeads } from './lines.ts'
import { reasonOf } from './outcome.ts'

/**
 * Characters that XML 1.0 cannot represent, even escaped. Built from numbers, so that the source has none.
 */
const illegal = new RegExp(
  `[${range(0, 0x08)}${range(0x0b, 0x0c)}${range(0x0e, 0x1f)}${range(0xfffe, 0xffff)}]|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]`,
  'g',
)

function range(from: number, to: number): string {
  return `${String.fromCharCode(from)}-${String.fromCharCode(to)}`
}

const special: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Escapes text for an element; replaces characters that XML cannot represent with U+FFFD. */
function xmlText(text: string): string {
  return text.replace(illegal, '\ufffd').replace(/[&<>]/g, (character) => special[character] ?? '')
}

/** Escapes text for an attribute in double quotes; keeps line ends and tabs. */
function xmlAttribute(text: string): string {
  return text
    .replace(illegal, '\ufffd')
    .replace(/[&<>"]/g, (character) => special[character] ?? '')
    .replace(/[\t\n\r]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** JUnit verdict of a status: a failure is the script's, an error is the environment's. */
const verdicts: Record<ResultStatus, 'passed' | 'failure' | 'error' | 'skipped'> = {
  SUCCESS: 'passed',
  FAILED: 'failure',
  TIMEOUT: 'failure',
  UNREACHABLE: 'error',
  LOST: 'error',
  SKIPPED: 'skipped',
  CANCELLED: 'error',
  PENDING: 'error',
  RUNNING: 'error',
}

/** A host that never started counts as skipped; one stopped midway, as by a deadline, must not look fine. */
const verdictOf = ({ status, startedAt }: TaskResult) =>
  status === 'CANCELLED' && startedAt === null ? 'skipped' : verdicts[status]

const seconds = (milliseconds: number | null) => (Math.max(0, milliseconds ?? 0) / 1000).toFixed(3)

function gateProperties({ verify, rollback }: TaskResult): string[] {
  const exit = (exitCode: number | null) => (exitCode === null ? '' : `, exit ${exitCode}`)
  const gates: [string, string][] = []
  if (verify) gates.push(['verify', `${verify.status}${exit(verify.exitCode)}, attempts ${verify.attempts}`])
  if (rollback) gates.push(['rollback', `${rollback.status}${exit(rollback.exitCode)}`])
  if (gates.length === 0) return []
  const properties = gates.map(([name, value]) => `<property name="${name}" value="${value}"/>`)
  return [`<properties>${properties.join('')}</properties>`]
}

/** JUnit XML with a case per host, as read by Jenkins, GitLab and others. */
export class JunitOutput implements OutputFormat {
  readonly #stdout: Sink
  readonly #raw: boolean
  readonly #limit: number
  readonly #kept = new Map<string, BoundedText>()
  readonly #heads = new PhaseHeads()

  constructor({ stdout, raw, hostCount }: Pick<FormatOptions, 'stdout' | 'raw' | 'hostCount'>) {
    this.#stdout = stdout
    this.#raw = raw
    this.#limit = keptPerHost(hostCount)
  }

  event(event: TaskEvent): void {
    if (event.type !== 'output') return
    const { hostId, stream } = event.entry
    const key = `${hostId} ${stream}`
    let kept = this.#kept.get(key)
    if (kept === undefined) {
      kept = new BoundedText(this.#limit)
      this.#kept.set(key, kept)
    }
    kept.push(this.#raw ? event.entry.data : this.#heads.marked(key, event.entry))
  }

  async end(task: Task): Promise<void> {
    const name = xmlAttribute(sanitizeLine(task.scriptName ?? 'exec'))
    const count = (verdict: string) => task.results.filter((result) => verdictOf(result) === verdict).length
    const totals = `tests="${task.results.length}" failures="${count('failure')}" errors="${count('error')}"`
    const time = seconds(task.duration)
    const timestamp = (task.startedAt ?? task.createdAt).slice(0, 19)
    await this.#stdout.write(
      `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="rsm" ${totals} time="${time}">
  <testsuite id="0" package="rsm" name="${name}" timestamp="${xmlAttribute(timestamp)}" hostname="localhost" ${totals} skipped="${count('skipped')}" time="${time}">
    <properties>
      <property name="task" value="${xmlAttribute(task.taskId)}"/>
      <property name="status" value="${task.status}"/>
      <property name="createdBy" value="${xmlAttribute(task.createdBy)}"/>
    </properties>
`,
    )
    // Jenkins treats a dot as the end of a package.
    const className = `rsm.${name.replaceAll('.', '_')}`
    for (const result of task.results) await this.#stdout.write(this.#case(result, className, task.timeout))
    await this.#stdout.write('  </testsuite>\n</testsuites>\n')
  }

  #case(result: TaskResult, className: string, timeout: number): string {
    const verdict = verdictOf(result)
    const reason = reasonOf(result, timeout)
    const message = `message="${xmlAttribute(reason)}"`
    const body = [
      ...gateProperties(result),
      ...(verdict === 'passed'
        ? []
        : [`<${verdict} ${message}${verdict === 'skipped' ? '' : ` type="${result.status}"`}/>`]),
      ...this.#output(result, 'stdout', 'system-out'),
      ...this.#output(result, 'stderr', 'system-err'),
    ]
    const head = `    <testcase name="${xmlAttribute(sanitizeLine(result.hostname))}" classname="${className}" time="${seconds(result.duration)}"`
    if (body.length === 0) return `${head}/>\n`
    return `${head}>\n${body.map((element) => `      ${element}\n`).join('')}    </testcase>\n`
  }

  #output(result: TaskResult, stream: Stream, element: string): string[] {
    const kept = this.#kept.get(`${result.hostId} ${stream}`)
    if (kept === undefined || kept.isEmpty) return []
    const text = kept.toString().replace(/\r\n?/g, '\n')
    return [`<${element}>${xmlText(this.#raw ? text : sanitize(text))}</${element}>`]
  }
}
