import { RsmError } from '../core/errors.ts'
import type { Host } from '../core/protocol/http/hosts.ts'
import { confirm } from './input/prompt.ts'

/** The host's agent loses its link and what it runs is heard of no more: that is asked, as deletions are (contract §9). */
export async function confirmRevocation({ hostname }: Host, yes: boolean): Promise<void> {
  if (yes) return
  if (!(await confirm(`Revoke the agent that ${hostname} has now?`, 'say --yes')))
    throw new RsmError('interrupted', `${hostname} keeps its agent`)
}
