import { RsmError } from '../core/errors.ts'
import type { Host } from '../core/protocol/http/hosts.ts'
import { confirm } from './input/prompt.ts'

/** Asks, as deletions do (contract §9): the agent loses its link, and results of what it runs are lost. */
export async function confirmRevocation({ hostname }: Host, yes: boolean): Promise<void> {
  if (yes) return
  if (!(await confirm(`Revoke the agent that ${hostname} has now?`, 'use --yes')))
    throw new RsmError('interrupted', `${hostname} keeps its agent`)
}
