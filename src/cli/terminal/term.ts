import { RsmError } from '../../core/errors.ts'
import { largestScreen } from '../../core/protocol/bounds.ts'
import type { TerminalCreate } from '../../core/protocol/http/terminals.ts'
import { unknownFields } from '../command/older-server.ts'

interface Size {
  readonly cols: number
  readonly rows: number
}

/** TERM for the remote side: `dumb` for a file or pipe, so that programs do not colour it. */
export function termOf(env: NodeJS.ProcessEnv): string | undefined {
  if (!process.stdout.isTTY) return 'dumb'
  const term = env['TERM'] ?? ''
  return /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/.test(term) ? term : undefined
}

/** Whether the local terminal reports 24-bit colour. */
export function hasTrueColor(env: NodeJS.ProcessEnv): boolean {
  return process.stdout.isTTY && ['truecolor', '24bit'].includes(env['COLORTERM'] ?? '')
}

/** Size of the terminal, or of COLUMNS and LINES, or 80×24. */
export function localSize(env: NodeJS.ProcessEnv = process.env): Size {
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.isTTY) continue
    const [cols, rows] = stream.getWindowSize()
    // A terminal without a known size reports 0×0.
    if (cols > 0 && rows > 0) return { cols: bounded(cols), rows: bounded(rows) }
  }
  const number = (name: string, instead: number) => {
    const text = env[name] ?? ''
    return /^[1-9]\d{0,3}$/.test(text) ? bounded(Number(text)) : instead
  }
  return { cols: number('COLUMNS', 80), rows: number('LINES', 24) }
}

const bounded = (count: number) => Math.min(largestScreen, Math.max(1, count))

/** Creates a session; retries without `trueColor` if an older server refuses it. */
export async function withKnownColour<T>(
  input: TerminalCreate,
  create: (input: TerminalCreate) => Promise<T>,
): Promise<T> {
  return create(input).catch((error: unknown) => {
    if (!(error instanceof RsmError && unknownFields(error).includes('trueColor'))) throw error
    const { trueColor: _, ...known } = input
    return create(known)
  })
}
