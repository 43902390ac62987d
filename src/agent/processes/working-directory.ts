import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { RsmError } from '../../core/errors.ts'
import { Inquiry } from './inquiry.ts'

/** Threads that may be held before nothing more is looked at: one is left for the agent's own files. */
const mostHeld = 3

type Looked = Inquiry<Pick<Stats, 'isDirectory'>>

/** Looked at before anything starts there, as a start on a dead mount would hold the whole agent. */
const looked: Looked = new Inquiry(stat, mostHeld)

/** Why nothing can start in a directory, as a sentence; null where it can. */
export async function workDirFault(workDir: string, directories = looked): Promise<string | null> {
  try {
    if ((await directories.ask(workDir)).isDirectory()) return null
    return `the working directory ${workDir} is not a directory`
  } catch (error) {
    return `the working directory ${workDir}: ${reasonOf(error)}`
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof RsmError) return error.message
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
    ? 'does not exist'
    : String(error)
}

/** The directory itself, or the root where there is none, or none that answers. */
export async function existing(directory: string, directories = looked): Promise<string> {
  return directories.ask(directory).then(
    (found) => (found.isDirectory() ? directory : '/'),
    () => '/',
  )
}
