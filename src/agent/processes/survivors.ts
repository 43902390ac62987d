import type { ScriptComplete } from '../../core/protocol/messages.ts'
import type { Ended } from './containment.ts'
import type { Remnant } from './tree.ts'
import type { Writer } from './writers.ts'

export interface LeftProcesses extends Ended {
  /** Processes that hold the output of a script that ended on its own. */
  readonly writers?: readonly Writer[]
}

/** For a tree that did not have to be ended. */
export const nothingLeft: LeftProcesses = { remnants: [], isAllKnown: true }

/** Processes listed in a result; more would not help. */
export const maxSurvivors = 20
export const longestCommand = 64

export function listed(remnants: readonly Remnant[]): { pid: number; command: string }[] {
  return remnants
    .slice(0, maxSurvivors)
    .map(({ pid, command }) => ({ pid, command: command.slice(0, longestCommand) }))
}

/** Part of a result about remaining processes; `survivors` is absent if unknown. */
export function leftReport({ remnants, isAllKnown, writers = [] }: LeftProcesses): {
  fields: Pick<ScriptComplete, 'survivors'>
  message: string | null
} {
  const message = remnantText(remnants)
  if (isAllKnown) return { fields: { survivors: listed([...remnants, ...writers]) }, message }
  const unknown = 'processes that left their parents are not known'
  return { fields: {}, message: message === null ? unknown : `${message}; ${unknown}` }
}

/** `4711 sh still holds the script's output open: later output is dropped`; null if none does. */
export function stillWriting({ writers = [] }: LeftProcesses): string | null {
  if (writers.length === 0) return null
  if (!writers.every(({ isSeen }) => isSeen))
    return `${named(writers)} may still hold the script's output open: later output is dropped`
  const verb = writers.length === 1 ? 'holds' : 'hold'
  return `${named(writers)} still ${verb} the script's output open: later output is dropped`
}

/** `could not end: 4711 dd (in uninterruptible sleep), 4712 sleep`; null if all have ended. */
export function remnantText(remnants: readonly Remnant[]): string | null {
  if (remnants.length === 0) return null
  return `could not end: ${named(remnants)}`
}

function named(remnants: readonly Remnant[]): string {
  const texts = remnants
    .slice(0, maxSurvivors)
    .map(
      ({ pid, command, isUninterruptible }) =>
        `${pid} ${command.slice(0, longestCommand)}${isUninterruptible ? ' (in uninterruptible sleep)' : ''}`,
    )
  const more = remnants.length - texts.length
  return `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
