import { RsmError } from '../core/errors.ts'

/** An edit that changes nothing is a mistake in the words typed: told before anything is asked of a server. */
export function refuseEmpty(patch: object, command: string): void {
  if (Object.keys(patch).length === 0)
    throw new RsmError('usage', 'nothing to change', { hint: `rsm ${command} --help` })
}
