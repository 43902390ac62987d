import { RsmError } from '../../core/errors.ts'
import type { OpenEnrollment } from '../../core/protocol/http/agent.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { confirm } from '../input/prompt.ts'
import { showTime } from '../text/time.ts'

const mostNamed = 5

/** Warns about enrollment tokens that are still open after a host was removed or revoked; null if none. */
export function showOpenEnrollments(open: readonly OpenEnrollment[], utc: boolean): string | null {
  const [first] = open
  if (first === undefined) return null
  const named = open.slice(0, mostNamed).map(({ id, name, maxUses, uses, expiresAt }) => {
    const left = `${maxUses - uses} of ${maxUses} uses left, until ${showTime(expiresAt, utc)}`
    return `${id} (${name === null ? '' : `${name}, `}${left})`
  })
  if (open.length > mostNamed) named.push(`${open.length - mostNamed} more`)
  const what = open.length === 1 ? 'enrollment token is' : 'enrollment tokens are'
  return (
    `${open.length} ${what} open, valid for a machine with a new agent directory: ${named.join(', ')}; ` +
    `to end one: rsm enrollments remove ${first.id}`
  )
}

/** Asks as deletions do (contract §9): the agent loses its link, and running results are lost. */
export async function confirmRevocation({ hostname }: Host, yes: boolean): Promise<void> {
  if (yes) return
  if (!(await confirm(`Revoke the current agent of ${hostname}?`, 'use --yes')))
    throw new RsmError('interrupted', `${hostname} keeps its agent`)
}
