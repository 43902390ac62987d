import { LineAssembler } from '../../cli/output/lines.ts'
import type { LogEntry } from '../../core/protocol/http/logs.ts'

/** A line, and a piece of output that it is of. */
export interface HostLine {
  readonly about: LogEntry
  readonly text: string
}

/** Puts the pieces of each host and stream together into lines. The end of a phase ends a line. */
export class HostLines {
  readonly #open = new Map<string, { lines: LineAssembler; about: LogEntry }>()

  /** The lines that this piece completes. */
  push(entry: LogEntry): HostLine[] {
    const key = `${entry.hostId} ${entry.stream}`
    const open = this.#open.get(key)
    const former = open !== undefined && open.about.phase !== entry.phase ? restOf(open) : []
    const lines = open?.lines ?? new LineAssembler()
    this.#open.set(key, { lines, about: entry })
    return [...former, ...lines.push(entry.data).map((text) => ({ about: entry, text }))]
  }

  /** What was left without a line's end, once no more comes. */
  finish(): HostLine[] {
    const rests = [...this.#open.values()].flatMap(restOf)
    this.#open.clear()
    return rests
  }
}

function restOf({ lines, about }: { lines: LineAssembler; about: LogEntry }): HostLine[] {
  const text = lines.take()
  return text === '' ? [] : [{ about, text }]
}
