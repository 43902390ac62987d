import { statSync } from 'node:fs'
import type { Machine } from './machine.ts'

/** Where an execution was received: a copy of its files has another boot or directory. */
export interface Origin {
  readonly bootId: string
  /** Device and inode of its directory, which a rename keeps. */
  readonly directory: string
}

/** Null if it cannot be read: a failing disk must not keep the agent from starting. */
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

/** False for a copied directory. Older agents record none; without the directory nothing starts. */
export function isOriginal(
  { directory: noted }: { readonly directory?: string },
  directory: string,
): boolean {
  const found = noted === undefined ? null : identityOf(directory)
  return found === null || found === noted
}

/** Whether another agent may continue from the same files: copied, or the machine restarted or cloned. */
export function mayBeShared(origin: Origin | undefined, directory: string, machine: Machine): boolean {
  return origin !== undefined && (origin.bootId !== machine.bootId() || !isOriginal(origin, directory))
}
