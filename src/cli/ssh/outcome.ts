import { foldNodeset } from '../../core/selector/nodeset.ts'
import { counted } from '../text/amounts.ts'
import { showDuration } from '../text/time.ts'
import type { Trouble } from './trouble.ts'

const statuses = ['JOINED', 'FAILED', 'UNREACHABLE', 'CANCELLED'] as const

/** As `--json` shows it. */
export interface JoinOutcome {
  /** Name for ssh. */
  readonly host: string
  readonly status: (typeof statuses)[number]
  /** 0 if it joined; 255 if ssh could not connect. */
  readonly exitCode: number
  readonly error: string | null
  readonly hint: string | null
  /** Whether the executable had to be copied. */
  readonly copied: boolean
  /** Its identity in rsm; null unless it joined. */
  readonly hostId: number | null
  readonly hostname: string | null
  readonly agentId: string | null
}

const unjoined = { hostId: null, hostname: null, agentId: null } as const

export function failed(
  host: string,
  copied: boolean,
  { isUnreachable, exit: exitCode, error, hint }: Trouble,
): JoinOutcome {
  const status = isUnreachable ? 'UNREACHABLE' : 'FAILED'
  return { host, status, exitCode, error, hint, copied, ...unjoined }
}

export function cancelled(host: string): JoinOutcome {
  return { host, status: 'CANCELLED', exitCode: 130, error: null, hint: null, copied: false, ...unjoined }
}

/** One host: its own code; several: 1 unless all joined (contract §9). */
export function exitOfJoins(outcomes: readonly JoinOutcome[]): number {
  const [only, ...others] = outcomes
  if (only !== undefined && others.length === 0) return only.exitCode
  return outcomes.every(({ status }) => status === 'JOINED') ? 0 : 1
}

/** Outcome of a host without its name, so that equal texts are shown once. */
export function textOf({ host, status, error, hostname, hostId }: JoinOutcome): string {
  if (status !== 'JOINED') return error === null ? status : `${status}: ${error}`
  return hostname?.toLowerCase() === host.toLowerCase() ? 'joined' : `joined as ${hostname} (@id:${hostId})`
}

/** Unique lines; merges ssh-keyscan commands for hosts on one port. */
function foldHints(outcomes: readonly JoinOutcome[]): string[] {
  const lines = new Set(outcomes.flatMap(({ hint }) => hint?.split('\n') ?? []))
  const scans = new Map<string, string[]>()
  const others: string[] = []
  for (const line of lines) {
    const [, scan, name = '', file] = /^(ssh-keyscan (?:-p \d+ )?)(\S+)( >> .*)$/.exec(line) ?? []
    if (scan === undefined) others.push(line)
    else scans.set(`${scan}%${file}`, [...(scans.get(`${scan}%${file}`) ?? []), name])
  }
  return [...[...scans].map(([scan, names]) => scan.replace('%', () => names.join(' '))), ...others]
}

const indent = ' '.repeat(5)

/** Hosts grouped by outcome, largest group first, each with its hints. */
function fold(outcomes: readonly JoinOutcome[]): string[] {
  const groups = new Map<string, JoinOutcome[]>()
  for (const outcome of outcomes)
    groups.set(textOf(outcome), [...(groups.get(textOf(outcome)) ?? []), outcome])
  return [...groups]
    .sort(([, a], [, b]) => b.length - a.length)
    .flatMap(([text, alike]) => [
      `${foldNodeset(alike.map(({ host }) => host))}: ${text}`,
      ...foldHints(alike).map((line) => indent + line),
    ])
}

/** For people: joined hosts for stdout; others with reasons, and a summary, for stderr. */
export function showJoins(
  outcomes: readonly JoinOutcome[],
  milliseconds: number,
): { readonly joined: string[]; readonly failed: string[]; readonly sum: string } {
  const isJoined = ({ status }: JoinOutcome) => status === 'JOINED'
  const counts = statuses.flatMap((status) => {
    const count = outcomes.filter((each) => each.status === status).length
    return count === 0 ? [] : [`${count} ${status}`]
  })
  const [only] = outcomes
  const what = outcomes.length === 1 && only !== undefined ? only.status : counts.join(', ')
  return {
    joined: fold(outcomes.filter(isJoined)),
    failed: fold(outcomes.filter((each) => !isJoined(each))),
    sum: `${counted(outcomes.length, 'host')}: ${what} in ${showDuration(milliseconds)}`,
  }
}
