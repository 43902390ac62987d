import { batchLines, orderLines, type PlannedScript, planView } from '../../cli/task/plan-view.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { GateOption, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { copyTimeout } from '../../core/tasks/plan.ts'
import { HostSet } from '../parts/host-set.tsx'
import { LongName } from '../parts/shown.tsx'
import type { CopiedFile } from './copy-of.ts'
import { filesText, stdinText } from './order-words.ts'

/** A script of a body, or a stored one as it is now. */
function plannedOf({ script, scriptId }: GateOption, scripts: readonly ScriptSummary[]): PlannedScript {
  const stored = scripts.find(({ id }) => id === scriptId)
  return {
    name: stored?.name ?? script?.name ?? null,
    type: stored?.type ?? script?.type ?? 'BASH',
    text: stored?.content ?? script?.content ?? '',
    timeout: stored?.timeout ?? script?.timeout ?? null,
  }
}

function ScriptText({ title, text }: { title: string; text: string }) {
  return (
    <details>
      <summary>{title}</summary>
      <pre class="script code" tabIndex={0} aria-label={title}>
        {sanitize(text)}
      </pre>
    </details>
  )
}

interface PlanPreviewProps {
  body: TaskCreate
  /** What is sent to the hosts, where it is at hand. */
  file?: CopiedFile | undefined
  hosts: readonly Host[]
  scripts: readonly ScriptSummary[]
}

/** `strategy: rolling` as a name and what it is. */
const halves = (line: string) => {
  const at = line.search(/[:=]/)
  return [line.slice(0, at), line.slice(at + 1).trim()] as const
}

/** What of files the plan of a command line has no line for. */
function fileLines(body: TaskCreate, file: CopiedFile | undefined): string[] {
  const stdin = stdinText(body, file)
  const { limitRate } = body
  return [
    ...(stdin === null ? [] : [`stdin: ${stdin}`]),
    ...(limitRate === undefined ? [] : [`rate: at most ${showBytes(limitRate)}/s to all hosts`]),
  ]
}

/** Where, in which batches and how a task would run, and all that it would run, as `--plan` says it. */
export function PlanPreview({ body, file, hosts, scripts }: PlanPreviewProps) {
  const verify = body.verify && {
    ...plannedOf(body.verify, scripts),
    ...(body.verify.timeout !== undefined && { timeout: body.verify.timeout }),
  }
  const rollback = body.rollback && plannedOf(body.rollback, scripts)
  const moved = filesText(body, file)
  const script: PlannedScript =
    moved === null
      ? plannedOf(body, scripts)
      : { name: moved, type: body.fetch ? 'FETCH' : 'COPY', text: '', timeout: copyTimeout }
  const plan = planView(hosts, body, script, undefined, { verify, rollback })
  const batches = plan.batches.length > 1 ? batchLines(plan.batches) : []
  return (
    <div class="plan">
      <HostSet hosts={hosts} />
      <dl>
        {[...batches, ...orderLines(plan), ...fileLines(body, file)].map((line) => {
          const [name, value] = halves(line)
          return (
            <div key={line}>
              <dt>{name}</dt>
              <dd>
                <LongName text={sanitizeLine(value)} />
              </dd>
            </div>
          )
        })}
      </dl>
      {moved === null && <ScriptText title="Script" text={plan.script} />}
      {plan.verify && <ScriptText title="What verifies" text={plan.verify.script} />}
      {plan.rollback && <ScriptText title="What rolls back" text={plan.rollback.script} />}
    </div>
  )
}
