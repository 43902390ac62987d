import { statSync } from 'node:fs'
import type { Machine } from './machine.ts'

/** Where an execution was taken in: a copy of its files brings neither along. */
export interface Origin {
  readonly bootId: string
  /** Device and inode of its directory. A directory that is renamed keeps them. */
  readonly directory: string
}

/** Null for one that cannot be looked at: a disk that fails must not keep the agent from starting. */
function identityOf(directory: string): string | null {
  try {
    const { dev, ino } = statSync(directory, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return null
  }
}

export function originOf(directory: string, machine: Machine): Origin {
  return { bootId: machine.bootId(), directory: identityOf(directory) ?? '' }
}

/** False for a directory that was copied. Older agents do not say; one that is gone starts nothing. */
export function isOriginal(
  { directory: noted }: { readonly directory?: string },
  directory: string,
): boolean {
  const found = noted === undefined ? null : identityOf(directory)
  return found === null || found === noted
}

/** Whether another agent may carry on from the same files: they were copied, or the machine was restarted or cloned. */
export function mayBeShared(origin: Origin | undefined, directory: string, machine: Machine): boolean {
  return origin !== undefined && (origin.bootId !== machine.bootId() || !isOriginal(origin, directory))
}
