import { RsmError } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/targets.ts'
import { firstLine } from '../../core/scripts/script-form.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { Services } from '../../core/services.ts'
import { unasked } from '../../core/tasks/plan.ts'
import { shortened } from '../../core/text/pieces.ts'
import { confirm } from '../input/prompt.ts'
import { namesOneHost, selectHosts } from '../names/names.ts'
import { counted } from '../text/amounts.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { isUtf8 } from '../text/screen.ts'

/** The most characters of host names: those of an irregular fleet would push the question off the screen. */
const longestNames = 400

const ellipsis = () => (isUtf8() ? '…' : '...')

export interface Intent {
  /** `Run 'reboot'`, `Run script deploy` */
  readonly action: string
  readonly server: string
}

/** `'reboot'`, `'reboot' …` where more lines follow. */
export function quotedBeginning(text: string): string {
  const line = sanitizeLine(firstLine(text) ?? '')
  return `'${line}'${text.trim().includes('\n') ? ` ${ellipsis()}` : ''}`
}

/** Asks whether it may start on these hosts; rejects with `interrupted` where it may not. */
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

/** Whether patterns or groups name every host. A person who spells out all names means them. */
async function isFleet(
  services: Pick<Services, 'hosts'>,
  { hosts = [], clusters, tags }: Target,
  count: number,
): Promise<boolean> {
  if (!clusters && !tags && !hosts.some((selector) => /[*?@]/.test(selector))) return false
  return count === (await services.hosts.list({ size: 1 })).totalElements
}

/**
 * The target, once a person has agreed to it where it is `--all` or large. What was agreed to is what runs: hosts that join
 * or are tagged between question and start are no part of it.
 */
export async function confirmTarget(
  services: Pick<Services, 'hosts'>,
  target: Target,
  intent: Intent,
): Promise<Target> {
  // One name is one host: that costs no call.
  if (namesOneHost(target.hosts ?? []) && Object.keys(target).length === 1) return target
  const hosts = await selectHosts(services, target)
  const all = target.all === true || (await isFleet(services, target, hosts.length))
  if (hosts.length <= unasked && !all) return target
  const hostnames = hosts.map((host) => host.hostname)
  await confirmHosts(intent, hostnames, all)
  return { hostIds: hosts.map((host) => host.id) }
}

/** The same for a retry, which runs on the hosts that did not succeed; `always`: however few they are. */
export async function confirmRetry(
  services: Pick<Services, 'tasks'>,
  taskId: string,
  intent: Intent,
  always: boolean,
): Promise<void> {
  const { status, results } = await services.tasks.get(taskId)
  // The server says of one that still runs that it can't be retried yet.
  if (status === 'RUNNING') return
  const hostnames = results.filter(({ status }) => status !== 'SUCCESS').map(({ hostname }) => hostname)
  if (hostnames.length > (always ? 0 : unasked)) await confirmHosts(intent, hostnames, false)
}
