import { RsmError } from '../core/errors.ts'

/** An edit without changes is a usage error, reported before the server is asked. */
export function refuseEmpty(patch: object, command: string): void {
  if (Object.keys(patch).length === 0)
    throw new RsmError('usage', 'nothing to change', { hint: `rsm ${command} --help` })
}
