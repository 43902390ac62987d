import { once } from 'node:events'
import type { Writable } from 'node:stream'

/** What a stream can show: nothing but text, the sixteen colours, or 256 and more. */
export type Colors = 'none' | 'basic' | 'many'

/** A stream that is written as fast as its reader takes it. */
export interface Sink {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  readonly colors?: Colors | undefined
  write(text: string): Promise<void> | void
}

type Stream = Writable & { isTTY?: boolean; columns?: number; getColorDepth?: () => number }

const isSet = (name: string) => (process.env[name] ?? '') !== ''

function colorsOf(stream: Stream): Colors {
  if (stream.isTTY !== true || isSet('NO_COLOR') || isSet('CI') || process.env['TERM'] === 'dumb')
    return 'none'
  const depth = stream.getColorDepth?.() ?? 1
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
