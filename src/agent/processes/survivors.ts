import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Ended } from './containment.ts'
import type { Remnant } from './tree.ts'
import type { Writer } from './writers.ts'

/** Processes left of a tree. */
export interface Left extends Ended {
  /** Processes that hold the output of a script that ended on its own. */
  readonly writers?: readonly Writer[]
}

/** For a tree that did not have to be ended. */
export const nothingLeft: Left = { remnants: [], isAllKnown: true }

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
export function leftOver({ remnants, isAllKnown, writers = [] }: Left): {
  left: Pick<ScriptComplete, 'survivors'>
  told: string | null
} {
  const told = toldOf(remnants)
  if (isAllKnown) return { left: { survivors: listed([...remnants, ...writers]) }, told }
  const unknown = 'processes that left their parents are not known'
  return { left: {}, told: told === null ? unknown : `${told}; ${unknown}` }
}

/** `4711 sh still holds the script's output open: later output is dropped`; null if none does. */
export function stillWriting({ writers = [] }: Left): string | null {
  if (writers.length === 0) return null
  if (!writers.every(({ isSeen }) => isSeen))
    return `${named(writers)} may still hold the script's output open: later output is dropped`
  const hold = writers.length === 1 ? 'holds' : 'hold'
  return `${named(writers)} still ${hold} the script's output open: later output is dropped`
}

/** `could not end: 4711 dd (in uninterruptible sleep), 4712 sleep`; null where all is ended. */
export function toldOf(remnants: readonly Remnant[]): string | null {
  if (remnants.length === 0) return null
  return `could not end: ${named(remnants)}`
}

function named(remnants: readonly Remnant[]): string {
  const shown = remnants
    .slice(0, mostSurvivors)
    .map(
      ({ pid, command, isUninterruptible }) =>
        `${pid} ${command.slice(0, longestCommand)}${isUninterruptible ? ' (in uninterruptible sleep)' : ''}`,
    )
  const more = remnants.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
