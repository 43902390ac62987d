import type { Log } from '../log.ts'
import type { ThrottledErrors } from '../throttled-errors.ts'
import type { Journal } from './journal.ts'
import type { Entry } from './journaled.ts'
import { dropRequest } from './request-file.ts'

/** What is written of executions as far as the disk lets: where it refuses, the next agent finds it out by itself. */
export class JournalWriter {
  readonly #journal: Journal
  readonly #log: Log
  readonly #errors: ThrottledErrors

  constructor(journal: Journal, log: Log, errors: ThrottledErrors) {
    this.#journal = journal
    this.#log = log
    this.#errors = errors
  }

  /** A full disk does not undo an end, and must not fail what runs. */
  add(entry: Entry): void {
    try {
      this.#journal.append(entry)
    } catch (error) {
      this.#log('ERROR', 'the journal refuses a line', { entry: entry.e, error: String(error) })
    }
  }

  /** Takes a start back. Where the disk refuses, it has had its one start: its end says that it never began, or LOST. */
  withdraw(taskId: string): void {
    try {
      this.#journal.withdraw(taskId)
    } catch (error) {
      this.#errors.tell('a start could not be taken back', taskId, error)
    }
  }

  /** Removes the copy of a request that has begun. */
  dropCopy({ taskId, directory }: { taskId: string; directory: string }): void {
    try {
      dropRequest(directory)
    } catch (error) {
      this.#errors.tell('the copy of a request stays', taskId, error)
    }
  }
}
