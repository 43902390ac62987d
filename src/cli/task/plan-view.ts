import { canBeReached } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { ExecutionOptions, TaskSummary } from '../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { defaultInterval } from '../../core/tasks/gates.ts'
import { showLimits } from '../../core/tasks/limits.ts'
import { defaultTimeout, failureLimit, planBatches } from '../../core/tasks/plan.ts'
import { runsScript, type TaskType } from '../../core/tasks/task.ts'
import { foldStanding } from '../hosts/standing.ts'
import { counted } from '../text/amounts.ts'
import { sanitize, sanitizeLine, shellWord } from '../text/sanitize.ts'

export interface PlannedScript {
  /** Null if typed on the command line. */
  readonly name: string | null
  readonly type: TaskType
  readonly text: string
  /** The script's own timeout in seconds, or null. */
  readonly timeout: number | null
}

interface PlannedGates {
  readonly verify?: PlannedScript | undefined
  readonly rollback?: PlannedScript | undefined
}

/** Number of batches above which consecutive ones of equal size share a line. */
const ownLines = 12

export type PlanView = ReturnType<typeof planView>

/**
 * The plan as `--plan` shows it (contract §9), without values of secret params. Seconds; null for no limit.
 */
export function planView(
  found: readonly Pick<Host, 'id' | 'hostname' | 'status'>[],
  options: ExecutionOptions,
  { name, type, text, timeout }: PlannedScript,
  deadline: number | undefined,
  { verify, rollback }: PlannedGates = {},
) {
  const order = {
    strategy: options.strategy ?? ('PARALLEL' as const),
    batchSize: options.batchSize ?? null,
    concurrency: options.concurrency ?? null,
    maxFailures: options.maxFailures ?? null,
    pauseSeconds: options.pauseSeconds ?? 0,
  }
  const names = found.map((host) => host.hostname)
  const limit = failureLimit(found.length, order)
  return {
    hosts: found.map(({ id, hostname, status }) => ({ id, hostname, status })),
    batches: planBatches(found.length, order).map((size) => names.splice(0, size)),
    strategy: order.strategy,
    concurrency: order.concurrency,
    maxFailures: Number.isFinite(limit) ? limit : null,
    pauseSeconds: order.pauseSeconds,
    timeout: options.timeout ?? timeout ?? defaultTimeout,
    deadline: deadline ?? null,
    queueSeconds: options.queueSeconds ?? null,
    runAs: options.runAs ?? null,
    workDir: options.workDir ?? null,
    limits: options.limits ?? null,
    params: options.params ?? {},
    secretParams: Object.keys(options.secretParams ?? {}),
    scriptName: name,
    type,
    script: text,
    verify: verify
      ? {
          ...gateOf(verify),
          retries: options.verify?.retries ?? 0,
          intervalSeconds: options.verify?.intervalSeconds ?? defaultInterval,
        }
      : null,
    rollback: rollback ? gateOf(rollback) : null,
  }
}

const gateOf = ({ name, type, timeout, text }: PlannedScript) => ({
  scriptName: name,
  type,
  timeout: timeout ?? defaultTimeout,
  script: text,
})

/** The whole plan as text, its scripts sanitized if `forTerminal`, verbatim for programs. */
export function planText(plan: PlanView, found: readonly Host[], forTerminal: boolean): string {
  const away = foldStanding(found.filter((host) => !canBeReached(host)))
  const clean = (text: string) => (forTerminal ? sanitize(text) : text)
  return [
    ...batchLines(plan.batches),
    ...away.map(({ names, state }) => `${names} is ${state}`),
    ...orderLines(plan),
    `\n${clean(plan.script)}`.trimEnd(),
    ...[plan.verify, plan.rollback].flatMap((gate, at) =>
      gate === null ? [] : [`\n${at === 0 ? 'verify' : 'rollback'}:\n${clean(gate.script)}`.trimEnd()],
    ),
  ].join('\n')
}

interface PlannedGate extends Partial<Pick<TaskGate, 'firstLine' | 'retries' | 'intervalSeconds'>> {
  readonly scriptName: string | null
  readonly type: TaskType
  readonly timeout: number
}
type TaskGate = NonNullable<TaskSummary['verify']>

/** `is-well (BASH), again up to 5 times, every 2 s; 10 s each`, or null. */
export function gateLine(gate: PlannedGate | null): string | null {
  if (gate === null) return null
  const { scriptName, firstLine, type, timeout, retries = 0, intervalSeconds = 0 } = gate
  const again = retries === 0 ? '' : `, again up to ${counted(retries, 'time')}, every ${intervalSeconds} s`
  const each = timeout === 0 ? '' : `; ${timeout} s${retries === 0 ? '' : ' each'}`
  return `${scriptName ?? firstLine ?? 'ad hoc'} (${type})${again}${each}`
}

/** `batch 2 (10): web[2-11]`; in a long plan `batches 3-40 (25 each): …`. */
export function batchLines(batches: readonly (readonly string[])[]): string[] {
  const [only] = batches
  if (batches.length === 1 && only !== undefined) return [`hosts (${only.length}): ${foldNodeset(only)}`]
  const lines: string[] = []
  for (let from = 0; from < batches.length; ) {
    const size = batches[from]?.length ?? 0
    let to = from + 1
    if (batches.length > ownLines) while (batches[to]?.length === size) to++
    const names = foldNodeset(batches.slice(from, to).flat())
    lines.push(
      to - from === 1
        ? `batch ${to} (${size}): ${names}`
        : `batches ${from + 1}-${to} (${size} each): ${names}`,
    )
    from = to
  }
  return lines
}

export function orderLines(plan: PlanView): string[] {
  const { strategy, concurrency, maxFailures, pauseSeconds, deadline, limits } = plan
  const stops = maxFailures === 0 ? 'a failure' : `more than ${counted(maxFailures ?? 0, 'failure')}`
  const says: Record<string, string | null> = {
    strategy:
      strategy.toLowerCase() +
      (concurrency === null ? '' : `, at most ${counted(concurrency, 'host')} at once`) +
      (maxFailures === null
        ? ''
        : `, stops ${strategy === 'ROLLING' ? 'after a batch with' : 'after'} ${stops}`) +
      (pauseSeconds === 0 ? '' : `, ${pauseSeconds} s between batches`),
    timeout: plan.timeout === 0 ? 'none' : `${plan.timeout} s on each host`,
    deadline: deadline === null ? null : `${deadline} s for all of it`,
    queue: plan.queueSeconds === null ? null : `${plan.queueSeconds} s for a host to be reachable`,
    'run as': plan.runAs,
    workdir: plan.workDir,
    limits: limits === null ? null : showLimits(limits),
    ...(!runsScript(plan.type)
      ? { does: plan.scriptName }
      : { script: `${plan.scriptName ?? 'ad hoc'} (${plan.type})` }),
    verify: gateLine(plan.verify),
    rollback: gateLine(plan.rollback),
  }
  return [
    ...Object.entries(says).flatMap(([name, value]) =>
      value === null ? [] : [`${name}: ${sanitizeLine(value)}`],
    ),
    ...Object.entries(plan.params).map(([name, value]) => `${name}=${shellWord(sanitize(value))}`),
    ...plan.secretParams.map((name) => `${name}=(secret)`),
  ]
}
