import type { HeldDirectory } from './held-directory.ts'

/** Keeps the temporary files of one piece of work, and knows whether it may still change anything. */
export interface Temporaries {
  readonly taskId: string
  /** Hears that something is in its place. */
  report(said: { readonly changed: boolean }): void
  /** To be called right before anything takes its place. Throws `Failure` where the work was ended. */
  assertLeave(): void
  /** Tells people what they should know of something that is in its place all the same; each sentence once. */
  note(sentence: string): void
  /** A new temporary file. */
  create(directory: HeldDirectory): { name: string; fd: number }
  /** A name for what is no file, that nothing has. */
  reserve(directory: HeldDirectory): string
}
