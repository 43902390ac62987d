import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { isColorless } from '../text/screen.ts'

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

function colorsOf(stream: Stream): Colors {
  const { CI = '', TERM } = process.env
  if (stream.isTTY !== true || isColorless() || CI !== '' || TERM === 'dumb') return 'none'
  // Node takes an empty NO_COLOR as set.
  const depth = stream.getColorDepth?.({ ...process.env, NO_COLOR: undefined }) ?? 1
  if (depth >= 8) return 'many'
  return depth >= 4 ? 'basic' : 'none'
}

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
