import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { RsmError } from '../../core/errors.ts'
import { Mutex } from '../../core/mutex.ts'
import { silentWith } from './mounts.ts'

/** How long a file system may take to answer, milliseconds. */
const defaultPatience = 5_000

/** Threads that checks of directories may block: one is left for the agent's own files. */
const maxBlockedThreads = 3

/** Calls of this process that have not answered in time, and hold a thread each. */
let blockedThreads = 0

/**
 * A question to file systems of which some may never answer: no call on a dead mount (hard NFS, a FUSE daemon that is
 * gone) returns. They are asked one after another, and one that is silent not again until it has answered.
 */
export class Inquiry<Answer> {
  readonly #question: (path: string) => Promise<Answer>
  readonly #maxBlocked: number
  readonly #patience: number
  readonly #silent = new Set<string>()
  readonly #mutex = new Mutex()

  /** Nothing is asked while `maxBlocked` threads are blocked: Node has four for all that is done with files. */
  constructor(question: (path: string) => Promise<Answer>, maxBlocked: number, patience = defaultPatience) {
    this.#question = question
    this.#maxBlocked = maxBlocked
    this.#patience = patience
  }

  /** Rejects as the question does. @throws RsmError `unavailable` when there is no answer, with how that is said. */
  ask(path: string): Promise<Answer> {
    return this.#mutex.run(() => this.#ask(path))
  }

  async #ask(path: string): Promise<Answer> {
    const silence = new RsmError('unavailable', 'does not answer')
    if (this.#silent.size > 0 && this.#silent.has(silentWith(path))) throw silence
    // Without its root no host does anything.
    if (blockedThreads >= this.#maxBlocked && path !== '/')
      throw new RsmError('unavailable', 'is not asked, as too many others do not answer')
    const answer = this.#question(path)
    return new Promise((resolve, reject) => {
      // An agent that was stopped itself hears first of the time that is over, then of the answer that has come.
      const late = setTimeout(() => setImmediate(giveUp), this.#patience)
      let isAnswered = false
      const giveUp = () => {
        if (isAnswered) return
        const place = silentWith(path)
        blockedThreads += 1
        this.#silent.add(place)
        const unblock = () => {
          blockedThreads -= 1
          this.#silent.delete(place)
        }
        answer.then(unblock, unblock)
        reject(silence)
      }
      const settled = () => {
        isAnswered = true
        clearTimeout(late)
      }
      answer.finally(settled).then(resolve, reject)
    })
  }
}

type Directories = Inquiry<Pick<Stats, 'isDirectory'>>

/** Asked before anything starts in a directory, because a start on a dead mount would hold the whole agent. */
const usualDirectories: Directories = new Inquiry(stat, maxBlockedThreads)

/** Why nothing can start in a directory, as a sentence; null where it can. */
export async function workDirFault(workDir: string, directories = usualDirectories): Promise<string | null> {
  try {
    if ((await directories.ask(workDir)).isDirectory()) return null
    return `the working directory ${workDir} is not a directory`
  } catch (error) {
    return `the working directory ${workDir}: ${reasonOf(error)}`
  }
}

/** The directory itself, or the root where there is none, or none that answers. */
export async function existing(directory: string, directories = usualDirectories): Promise<string> {
  return directories.ask(directory).then(
    (found) => (found.isDirectory() ? directory : '/'),
    () => '/',
  )
}

function reasonOf(error: unknown): string {
  if (error instanceof RsmError) return error.message
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
    ? 'does not exist'
    : String(error)
}
