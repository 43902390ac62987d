import { joinSelector, resolveHosts, resolveTarget, type TargetOptions } from '../../client/targets.ts'
import { RsmError } from '../../core/errors.ts'
import type { Target } from '../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import type { Services } from '../../core/services.ts'
import { confirm } from '../input/prompt.ts'
import { counted } from '../text/counted.ts'
import { sanitizeLine } from '../text/sanitize.ts'

/** A person is asked about more hosts than these. */
const unasked = 20
/** Of their names, in characters: those of an irregular fleet would push the question off the screen. */
const longestNames = 400
/** Of a command, in characters: its beginning is enough to see that it is the wrong one. */
const longestText = 100

function shortened(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}...`
}

/** What is to be started, and where: the two things that a hasty hand gets wrong. */
export interface Intent {
  /** `Run 'reboot'`, `Run script deploy` */
  readonly what: string
  /** `staging (https://rsm.example.org)` */
  readonly server: string
}

/** `'reboot'`: the first line of a text, quoted. */
export function quotedBeginning(text: string): string {
  const [first = '', ...more] = text.trim().split('\n')
  const line = shortened(sanitizeLine(first), longestText)
  return `'${line}${more.length > 0 && !line.endsWith('...') ? '...' : ''}'`
}

/** Asks whether it may start on these hosts; rejects with `interrupted` where it may not. */
async function confirmHosts(
  { what, server }: Intent,
  hostnames: readonly string[],
  all: boolean,
): Promise<void> {
  const count = `${all ? 'all ' : ''}${counted(hostnames.length, 'host')}`
  const names = shortened(foldNodeset(hostnames), longestNames)
  if (!(await confirm(`${what} on ${count} of ${server}, ${names}?`, 'say --yes')))
    throw new RsmError('interrupted', 'nothing was started')
}

/**
 * The target, once a person has agreed to it where it is `--all` or large. What was agreed to is what runs: hosts that join
 * or are tagged between question and start are no part of it.
 */
export async function confirmTarget(
  services: Pick<Services, 'hosts' | 'clusters'>,
  targets: TargetOptions,
  intent: Intent,
): Promise<Target> {
  const selector = joinSelector(targets)
  if (selector !== undefined && !targets.all) {
    // One name is one host: that costs no call.
    if (/^[A-Za-z0-9._-]+$/.test(selector)) return { selector }
    const { totalElements } = await services.hosts.list({ selector, size: 1 })
    if (totalElements <= unasked) return { selector }
  }
  const hosts = await resolveHosts(services, targets)
  if (hosts.length === 0 || (hosts.length <= unasked && !targets.all)) return resolveTarget(services, targets)
  const hostnames = hosts.map((host) => host.hostname)
  await confirmHosts(intent, hostnames, targets.all)
  return { hostIds: hosts.map((host) => host.id) }
}

/** The same for a retry, which runs on the hosts that did not succeed. */
export async function confirmRetry(
  services: Pick<Services, 'tasks'>,
  taskId: string,
  intent: Intent,
): Promise<void> {
  const { results } = await services.tasks.get(taskId)
  const hostnames = results.filter(({ status }) => status !== 'SUCCESS').map(({ hostname }) => hostname)
  if (hostnames.length > unasked) await confirmHosts(intent, hostnames, false)
}
