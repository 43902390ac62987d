import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { isColorless } from '../text/screen.ts'

/** One way to show a task: what comes goes in, in order, and then the end. A format is one file with one of these. */
export interface OutputFormat {
  event(event: TaskEvent): Promise<void> | void
  /** The task with its results, after its last event; also after an interruption, with what is known. */
  end(task: Task): Promise<void> | void
}

export interface FormatOptions {
  readonly stdout: Sink
  /** Of a format that goes to a file, the same file. */
  readonly stderr: Sink
  /** Both stand in one place: a terminal, a file. A line that is not ended on the one is in the way of the other. */
  readonly together: boolean
  readonly hostCount: number
  /** One host only: nobody else breaks into its lines. */
  readonly alone: boolean
  readonly prefix: boolean
  readonly raw: boolean
  readonly diff: boolean
  readonly timestamps?: { readonly utc: boolean } | undefined
  /** Takes the unfinished line of one of many hosts, '' once it is over; it stands nowhere else until it is finished. */
  readonly unfinished?: ((text: string) => void) | undefined
  readonly notice: (text: string) => void
}

/** What a stream can show: nothing but text, the sixteen colours, or 256 and more. */
export type Colors = 'none' | 'basic' | 'many'

/** A stream that is written as fast as its reader takes it. */
export interface Sink {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly colors?: Colors | undefined
  write(text: string): Promise<void> | void
}

type Stream = Writable & { isTTY?: boolean; columns?: number; getColorDepth?: (env?: object) => number }

/**
 * Waits for a slow reader, so that memory stays bounded however much the hosts write. Where the reader of one that is
 * `dispensable` has gone, nothing is written any more and nobody waits; else that rejects.
 */
export function sinkOf(stream: Stream, { dispensable = false } = {}): Sink {
  let isGone = false
  if (dispensable)
    stream.once('error', () => {
      isGone = true
    })
  return {
    get isTTY() {
      return stream.isTTY
    },
    get columns() {
      return stream.columns
    },
    colors: colorsOf(stream),
    write(text) {
      if (isGone || text === '' || stream.write(text)) return
      const drained = once(stream, 'drain').then(() => {})
      return dispensable ? drained.catch(() => {}) : drained
    },
  }
}

function colorsOf(stream: Stream): Colors {
  const { CI = '', TERM } = process.env
  if (stream.isTTY !== true || isColorless() || CI !== '' || TERM === 'dumb') return 'none'
  // Node takes an empty NO_COLOR as set.
  const depth = stream.getColorDepth?.({ ...process.env, NO_COLOR: undefined }) ?? 1
  if (depth >= 8) return 'many'
  return depth >= 4 ? 'basic' : 'none'
}
