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

/** An inline script, or the current version of a stored one. */
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
  /** The file to send, if the browser has it. */
  file?: CopiedFile | undefined
  hosts: readonly Host[]
  scripts: readonly ScriptSummary[]
}

/** Splits a line such as `strategy: rolling` into name and value. */
const halves = (line: string) => {
  const at = line.search(/[:=]/)
  return [line.slice(0, at), line.slice(at + 1).trim()] as const
}

/** Lines about files, which the plan of the command line lacks. */
function fileLines(body: TaskCreate, file: CopiedFile | undefined): string[] {
  const stdin = stdinText(body, file)
  const { limitRate } = body
  return [
    ...(stdin === null ? [] : [`stdin: ${stdin}`]),
    ...(limitRate === undefined ? [] : [`rate: at most ${showBytes(limitRate)}/s to all hosts`]),
  ]
}

/** Hosts, batches, order and scripts of a task, as `--plan` shows them. */
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
      {plan.verify && <ScriptText title="Verify script" text={plan.verify.script} />}
      {plan.rollback && <ScriptText title="Rollback script" text={plan.rollback.script} />}
    </div>
  )
}
