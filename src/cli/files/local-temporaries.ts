import { randomBytes } from 'node:crypto'
import { constants } from 'node:os'
import type { HeldDirectory } from '../../disk/files/held-directory.ts'
import type { Temporaries } from '../../disk/files/temporaries.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** What lies here for a moment only: it goes with this process, also where a signal ends that. */
export class LocalTemporaries implements Temporaries {
  readonly taskId: string
  readonly #notice: (line: string) => void
  readonly #notes = new Set<string>()
  #last: { directory: HeldDirectory; name: string } | undefined
  readonly #end = (signal: NodeJS.Signals) => {
    this.#sweep()
    process.exit(128 + constants.signals[signal])
  }

  constructor(taskId: string, notice: (line: string) => void) {
    this.taskId = taskId
    this.#notice = notice
    for (const signal of signals) process.once(signal, this.#end)
  }

  report(): void {}

  assertLeave(): void {}

  note(sentence: string): void {
    if (!this.#notes.has(sentence)) this.#notice(sentence)
    this.#notes.add(sentence)
  }

  create(directory: HeldDirectory): { name: string; fd: number } {
    for (;;) {
      const name = this.reserve(directory)
      const fd = directory.createFile(name)
      if (fd !== null) return { name, fd }
    }
  }

  reserve(directory: HeldDirectory): string {
    const name = `.rsm-${this.taskId}-${randomBytes(4).toString('hex')}.part`
    this.#last = { directory, name }
    return name
  }

  close(): void {
    for (const signal of signals) process.off(signal, this.#end)
  }

  /** One is made at a time; those before it have taken their places, or were removed. */
  #sweep(): void {
    try {
      this.#last?.directory.remove(this.#last.name)
    } catch {
      // Its directory is closed: it was done with.
    }
  }
}
