import { largestScreen } from '../../core/protocol/bounds.ts'

export interface Size {
  readonly cols: number
  readonly rows: number
}

const bounded = (count: number) => Math.min(largestScreen, Math.max(1, count))

/** Of the terminal that shows the output, else what COLUMNS and LINES say, else 80×24. */
export function localSize(env: NodeJS.ProcessEnv = process.env): Size {
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.isTTY) continue
    const [cols, rows] = stream.getWindowSize()
    // A terminal that knows no size says 0×0.
    if (cols > 0 && rows > 0) return { cols: bounded(cols), rows: bounded(rows) }
  }
  const number = (name: string, instead: number) => {
    const text = env[name] ?? ''
    return /^[1-9]\d{0,3}$/.test(text) ? bounded(Number(text)) : instead
  }
  return { cols: number('COLUMNS', 80), rows: number('LINES', 24) }
}
