import { batchLines, orderLines, type PlannedScript, planView } from '../../cli/task/plan-view.ts'
import { counted, showBytes } from '../../cli/text/amounts.ts'
import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import type { GateOption, TaskCreate } from '../../core/protocol/http/tasks.ts'
import { firstLine } from '../../core/scripts/script-form.ts'
import { copyTimeout } from '../../core/tasks/plan.ts'
import { HostSet, LongName } from '../parts/shown.tsx'
import type { CopiedFile } from './task-of.ts'
import type { WithFile } from './upload.tsx'

export type Order = WithFile<TaskCreate>

/** An order to confirm: fixed to the hosts that are shown, even if others join meanwhile. */
export interface Asked extends Order {
  readonly hosts: readonly Host[]
  readonly isFleet: boolean
}

interface PlanPreviewProps {
  body: TaskCreate
  /** The file to send, if the browser has it. */
  file?: CopiedFile | undefined
  hosts: readonly Host[]
  scripts: readonly ScriptSummary[]
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

type Doing = 'run' | 'copy' | 'check' | 'fetch'

/** `‘reboot’`, `the script deploy`. */
function scriptText({ script, scriptId }: Order['body'], scripts: readonly ScriptSummary[]): string {
  if (script === undefined) return `the script ${scripts.find(({ id }) => id === scriptId)?.name ?? ''}`
  const more = script.content.trim().includes('\n') ? ' …' : ''
  return `‘${firstLine(script.content) ?? ''}’${more}`
}

export function questionOf(
  { body, file, hosts, isFleet }: Asked,
  scripts: readonly ScriptSummary[],
): { title: string; yes: string; no: string } {
  const many = `${isFleet ? 'all ' : ''}${counted(hosts.length, 'host')}`
  if (body.fetch !== undefined)
    return { title: `Fetch ${body.fetch.path} from ${many}?`, yes: `Fetch from ${many}`, no: 'Don’t fetch' }
  if (body.copy === undefined)
    return { title: `Run ${scriptText(body, scripts)} on ${many}?`, yes: `Run on ${many}`, no: 'Don’t run' }
  const [name, path] = [file?.name ?? 'the file', body.copy.path]
  if (body.copy.check !== undefined)
    return {
      title: `Compare ${name} with ${path} on ${many}?`,
      yes: `Compare on ${many}`,
      no: 'Don’t compare',
    }
  return { title: `Copy ${name} to ${path} on ${many}?`, yes: `Copy to ${many}`, no: 'Don’t copy' }
}

/** Label of the form's button: `Run on web1`, `Copy to 3 hosts`. */
export function startText(doing: Doing, where: string): string {
  const [alone, onHosts] = {
    run: ['Run', 'Run on'],
    copy: ['Copy', 'Copy to'],
    check: ['Compare', 'Compare on'],
    fetch: ['Fetch', 'Fetch from'],
  }[doing]
  return where === '' ? (alone ?? '') : `${onHosts ?? ''} ${where}`
}

const sized = (file: CopiedFile | undefined) =>
  file === undefined ? 'a file' : `${file.name} (${showBytes(file.size)})`

/** `compare shop.conf (86 B) with /etc/shop.conf, write nothing, mode 0640`; null for scripts. */
function filesText({ copy, fetch }: TaskCreate, file: CopiedFile | undefined): string | null {
  if (fetch !== undefined)
    return [
      `fetch ${fetch.kind === 'TREE' ? 'the directory ' : ''}${fetch.path}`,
      fetch.follow === true ? 'follow symlinks' : '',
    ]
      .filter(Boolean)
      .join(', ')
  if (copy === undefined) return null
  const { path, kind, check, mode, owner, group, backup } = copy
  const name = kind === 'TREE' ? `the content of ${sized(file)}` : sized(file)
  return [
    check === undefined ? `copy ${name} to ${path}` : `compare ${name} with ${path}, write nothing`,
    mode === undefined ? '' : `mode ${mode}`,
    owner === undefined ? '' : `owner ${owner}`,
    group === undefined ? '' : `group ${group}`,
    backup === true ? 'keep replaced files' : '',
  ]
    .filter(Boolean)
    .join(', ')
}

/** Stdin of a script; null without one. */
const stdinText = ({ stdin }: TaskCreate, file: CopiedFile | undefined): string | null =>
  stdin === undefined ? null : sized(file)
