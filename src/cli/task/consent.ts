import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/clusters.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { firstLine } from '../../core/scripts/script-form.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { Services } from '../../core/services.ts'
import { unasked } from '../../core/tasks/plan.ts'
import { shortened } from '../../core/text/pieces.ts'
import { confirm, isSomeoneThere } from '../input/prompt.ts'
import { latestTask } from '../names/id-parts.ts'
import { namesOneHost, selectHosts } from '../names/names.ts'
import { counted } from '../text/amounts.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { isUtf8, withOwnMark } from '../text/screen.ts'
import { showTime } from '../text/time.ts'
import type { Runnable } from './runnable.ts'

/** Characters of host names, so that an irregular fleet does not push the question off the screen. */
const longestNames = 400

const ellipsis = () => (isUtf8() ? '…' : '...')

export interface Intent {
  /** `Run 'reboot'`, `Run script deploy` */
  readonly action: string
  readonly server: string
}

/** `Run 'reboot'`, `Run script deploy`, `Upgrade to 0.2.0` */
export function intentOf(runnable: Runnable): string {
  if ('upgrade' in runnable || 'prepare' in runnable)
    return sanitizeLine(runnable.text.charAt(0).toUpperCase() + runnable.text.slice(1))
  const name = 'scriptId' in runnable ? runnable.name : runnable.script.name
  return `Run ${name === undefined ? quotedBeginning(runnable.text) : `script ${sanitizeLine(name)}`}`
}

/** `'reboot'`, or `'reboot' …` if more lines follow. */
export function quotedBeginning(text: string): string {
  const line = sanitizeLine(firstLine(text) ?? '')
  return `'${line}'${text.trim().includes('\n') ? ` ${ellipsis()}` : ''}`
}

/** Asks for confirmation; rejects with `interrupted` if refused. */
async function confirmHosts(
  { action, server }: Intent,
  hostnames: readonly string[],
  all: boolean,
): Promise<void> {
  const names = shortened(foldNodeset(hostnames), longestNames, ellipsis())
  const count = `${all ? 'all ' : ''}${counted(hostnames.length, 'host')}`
  if (!(await confirm(`${action} on ${count} of ${server}, ${names}?`, 'use --yes')))
    throw new RsmError('interrupted', 'nothing was started')
}

/** Whether patterns or groups match every host; a list of all names is deliberate. */
async function isFleet(
  services: Pick<Services, 'hosts'>,
  { hosts = [], clusters, tags }: Target,
  count: number,
): Promise<boolean> {
  if (!clusters && !tags && !hosts.some((selector) => /[*?@]/.test(selector))) return false
  return count === (await services.hosts.list({ size: 1 })).totalElements
}

/**
 * Asks for confirmation if the target is `--all` or large. Pins the confirmed hosts: later ones are excluded.
 */
export async function confirmTarget(
  services: Pick<Services, 'hosts'>,
  target: Target,
  intent: Intent,
): Promise<Target> {
  // A single name is one host, without a request.
  if (namesOneHost(target.hosts ?? []) && Object.keys(target).length === 1) return target
  const hosts = await selectHosts(services, target)
  const all = target.all === true || (await isFleet(services, target, hosts.length))
  if (hosts.length <= unasked && !all) return target
  const hostnames = hosts.map((host) => host.hostname)
  await confirmHosts(intent, hostnames, all)
  return { hostIds: hosts.map((host) => host.id) }
}

/** The same for the hosts of a retry that did not succeed; `always` asks for any number of them. */
export async function confirmRetry(
  services: Pick<Services, 'tasks'>,
  taskId: string,
  intent: Intent,
  always: boolean,
): Promise<void> {
  const { status, results } = await services.tasks.get(taskId)
  // The server refuses to retry a running task.
  if (status === 'RUNNING') return
  const hostnames = results.filter(({ status }) => status !== 'SUCCESS').map(({ hostname }) => hostname)
  if (hostnames.length > (always ? 0 : unasked)) await confirmHosts(intent, hostnames, false)
}

interface Choice {
  readonly verb: 'cancel' | 'retry'
  readonly yes: boolean
  readonly utc: boolean
  readonly say: (text: string) => void
}

/** The caller's newest task, to end or repeat it. Errors: `usage` if not interactive and without `--yes`. */
export async function latestChosen(client: Client, { verb, yes, utc, say }: Choice): Promise<TaskSummary> {
  if (!yes && !isSomeoneThere())
    throw new RsmError('usage', `without a terminal, ${verb} of latest needs --yes`, {
      hint: `name the task: rsm tasks ${verb} TASK, or use --yes`,
    })
  const task = await latestTask(client)
  const hosts = counted(task.hostCount, 'host')
  say(`latest is ${task.taskId}: ${scriptText(task)} on ${hosts}, started ${showTime(task.createdAt, utc)}`)
  return task
}

/** Asks for confirmation; rejects with `interrupted` if refused. */
export async function confirmCancel(task: TaskSummary, server: string): Promise<void> {
  const question = `Cancel ${scriptText(task)} on ${counted(task.hostCount, 'host')} of ${server}?`
  if (!(await confirm(question, 'use --yes'))) throw new RsmError('interrupted', 'nothing was cancelled')
}

/** `script deploy`, `'df -h'`. */
export function scriptText({ scriptName, firstLine }: TaskSummary): string {
  if (scriptName !== null) return `script ${sanitizeLine(scriptName)}`
  return firstLine === null ? 'a command' : `'${withOwnMark(sanitizeLine(firstLine))}'`
}
