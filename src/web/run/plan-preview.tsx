import type { Host } from '../../core/protocol/http/hosts.ts'
import type { Script } from '../../core/protocol/http/scripts.ts'
import type { GateOption, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { copyTimeout } from '../../core/task/plan.ts'
import { batchLines, orderLines, type PlannedScript, planView } from '../../ui/task/plan-view.ts'
import { showBytes } from '../../ui/text/bytes.ts'
import { sanitize, sanitizeLine } from '../../ui/text/sanitize.ts'
import { HostSet } from '../parts/host-set.tsx'
import { LongName } from '../parts/long-name.tsx'

/** A script of a body, or a stored one as it is now. */
function plannedOf({ script, scriptId }: GateOption, scripts: readonly Script[]): PlannedScript {
  const stored = scripts.find(({ id }) => id === scriptId)
  return {
    name: stored?.name ?? script?.name ?? null,
    type: stored?.type ?? script?.type ?? 'BASH',
    text: stored?.content ?? script?.content ?? '',
    timeout: stored?.timeout ?? script?.timeout ?? null,
  }
}

/** `compare shop.conf (86 B) with /etc/shop.conf, mode 0640`; null where a script runs. */
function copySaid({ copy }: TaskCreate, file: File | undefined): string | null {
  if (copy === undefined) return null
  const { path, check, mode, owner, group, backup } = copy
  const name = file === undefined ? 'a file' : `${file.name} (${showBytes(file.size)})`
  return [
    check === undefined ? `copy ${name} to ${path}` : `compare ${name} with ${path}, write nothing`,
    mode === undefined ? '' : `mode ${mode}`,
    owner === undefined ? '' : `owner ${owner}`,
    group === undefined ? '' : `group ${group}`,
    backup === true ? 'keep what is replaced' : '',
  ]
    .filter(Boolean)
    .join(', ')
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
  /** What a copy sends, where it is at hand. */
  file?: File | undefined
  hosts: readonly Host[]
  scripts: readonly Script[]
}

/** `strategy: rolling` as a name and what it is. */
const halves = (line: string) => {
  const at = line.search(/[:=]/)
  return [line.slice(0, at), line.slice(at + 1).trim()] as const
}

/** Where, in which batches and how a task would run, and all that it would run, as `--plan` says it. */
export function PlanPreview({ body, file, hosts, scripts }: PlanPreviewProps) {
  const verify = body.verify && {
    ...plannedOf(body.verify, scripts),
    ...(body.verify.timeout !== undefined && { timeout: body.verify.timeout }),
  }
  const rollback = body.rollback && plannedOf(body.rollback, scripts)
  const copied = copySaid(body, file)
  const script: PlannedScript =
    copied === null
      ? plannedOf(body, scripts)
      : { name: copied, type: 'COPY', text: '', timeout: copyTimeout }
  const plan = planView(hosts, body, script, undefined, { verify, rollback })
  const batches = plan.batches.length > 1 ? batchLines(plan.batches) : []
  return (
    <div class="plan">
      <HostSet hosts={hosts} />
      <dl>
        {[...batches, ...orderLines(plan)].map((line) => {
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
      {copied === null && <ScriptText title="Script" text={plan.script} />}
      {plan.verify && <ScriptText title="What verifies" text={plan.verify.script} />}
      {plan.rollback && <ScriptText title="What rolls back" text={plan.rollback.script} />}
    </div>
  )
}
