import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Ended } from './containment.ts'
import type { Remnant } from './tree.ts'

/** So many are named in a result; more would say no more. */
export const mostSurvivors = 20
export const longestCommand = 64

/** As results carry them. */
export function listed(remnants: readonly Remnant[]): { pid: number; command: string }[] {
  return remnants
    .slice(0, mostSurvivors)
    .map(({ pid, command }) => ({ pid, command: command.slice(0, longestCommand) }))
}

/** What a result says of what is left: `survivors` is absent where that is not known. */
export function leftOver({ remnants, isAllKnown }: Ended): {
  left: Pick<ScriptComplete, 'survivors'>
  told: string | null
} {
  const told = toldOf(remnants)
  if (isAllKnown) return { left: { survivors: listed(remnants) }, told }
  const unknown = 'processes that left their parents are not known'
  return { left: {}, told: told === null ? unknown : `${told}; ${unknown}` }
}

/** `could not end: 4711 dd (in uninterruptible sleep), 4712 sleep`; null where all is ended. */
export function toldOf(remnants: readonly Remnant[]): string | null {
  if (remnants.length === 0) return null
  const named = remnants
    .slice(0, mostSurvivors)
    .map(
      ({ pid, command, isUninterruptible }) =>
        `${pid} ${command.slice(0, longestCommand)}${isUninterruptible ? ' (in uninterruptible sleep)' : ''}`,
    )
  const more = remnants.length - named.length
  return `could not end: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
