import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { TaskEvent } from '../../client/watch.ts'
import type { Task } from '../../core/protocol/http/tasks.ts'
import { isColorless } from '../text/screen.ts'

/** A way to show a task: gets its events in order, then its end. */
export interface OutputFormat {
  event(event: TaskEvent): Promise<void> | void
  /** The task with its results, after its last event; after an interruption, as far as known. */
  end(task: Task): Promise<void> | void
}

export interface FormatOptions {
  readonly stdout: Sink
  /** For a format that writes to a file, the same file. */
  readonly stderr: Sink
  /** Both go to one place, e.g. a terminal: an unterminated line on one disturbs the other. */
  readonly together: boolean
  readonly hostCount: number
  /** Only one host, so that no other breaks into its lines. */
  readonly alone: boolean
  readonly prefix: boolean
  readonly raw: boolean
  readonly diff: boolean
  readonly timestamps?: { readonly utc: boolean } | undefined
  /** Shows one host's unfinished line among several, '' once finished; shown nowhere else until then. */
  readonly unfinished?: ((text: string) => void) | undefined
  readonly notice: (text: string) => void
}

/** Colours of a stream: none, the sixteen basic ones, or 256 and more. */
export type Colors = 'none' | 'basic' | 'many'

/** A stream with backpressure. */
export interface Sink {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly colors?: Colors | undefined
  write(text: string): Promise<void> | void
}

type Stream = Writable & { isTTY?: boolean; columns?: number; getColorDepth?: (env?: object) => number }

/**
 * Waits for a slow reader, so that memory stays bounded. If it is gone, a `dispensable` stream drops output,
 * others reject.
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
  // Node treats an empty NO_COLOR as set.
  const depth = stream.getColorDepth?.({ ...process.env, NO_COLOR: undefined }) ?? 1
  if (depth >= 8) return 'many'
  return depth >= 4 ? 'basic' : 'none'
}
