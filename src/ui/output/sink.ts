import { once } from 'node:events'
import type { Writable } from 'node:stream'

/** A stream that is written as fast as its reader takes it. */
export interface Sink {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string): Promise<void> | void
}

/** Waits for a slow reader, so that memory stays bounded however much the hosts write. */
export function sinkOf(stream: Writable & { isTTY?: boolean; columns?: number }): Sink {
  return {
    get isTTY() {
      return stream.isTTY
    },
    get columns() {
      return stream.columns
    },
    write(text) {
      if (text === '' || stream.write(text)) return
      return once(stream, 'drain').then(() => {})
    },
  }
}
