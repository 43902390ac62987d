import type { BaseCommand } from '../command/base-command.ts'
import { sinkOf } from '../output/sink.ts'
import { StatusLine } from '../output/status-line.ts'
import { sanitizeLine } from '../text/sanitize.ts'
import { isUtf8, isWatched } from '../text/screen.ts'
import { transferParts } from './transfer-text.ts'

/** Less time says little about a rate, in milliseconds. */
const firstRate = 1000

/** What people see of bytes that come or go. */
export interface TransferProgress {
  /** `size` is null where only its end says it. */
  readonly at: (bytes: number, size: number | null) => void
  readonly cut: (why: string) => void
  readonly end: () => void
}

/** A line on the terminal; `what` is `sending app.conf`. */
export function showTransfer({ globals }: BaseCommand, what: string): TransferProgress {
  const began = performance.now()
  const shown = sanitizeLine(what)
  let bytes = 0
  let size: number | null = null
  const text = () => {
    const milliseconds = performance.now() - began
    const rate = milliseconds < firstRate ? null : (bytes / milliseconds) * 1000
    return `${shown}: ${transferParts(bytes, size, rate).join(isUtf8() ? ' · ' : ' | ')}`
  }
  const isDrawn = process.stderr.isTTY && isWatched() && !globals.quiet && !globals.json
  const line = isDrawn ? new StatusLine(process.stderr, text) : undefined
  const stderr = sinkOf(process.stderr, { dispensable: true })
  const guarded = line?.guard(stderr) ?? stderr
  return {
    at(now, of) {
      bytes = now
      size = of
    },
    cut(why) {
      if (!globals.quiet)
        void guarded.write(`rsm: ${sanitizeLine(why)}; ${shown} continues where it was cut\n`)
    },
    end: () => line?.end(),
  }
}
