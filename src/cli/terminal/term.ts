import { RsmError } from '../../core/errors.ts'
import type { TerminalCreate } from '../../core/protocol/http/terminals.ts'
import { unknownFields } from '../command/older-server.ts'

/** Creates a session, without `trueColor` where an older server refuses it. */
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

/** Whether the terminal here says that it shows 24-bit colours. */
export function hasTrueColor(env: NodeJS.ProcessEnv): boolean {
  return process.stdout.isTTY && ['truecolor', '24bit'].includes(env['COLORTERM'] ?? '')
}

/** TERM for the other side: programs that write into a file or a pipe are not to colour it. */
export function termOf(env: NodeJS.ProcessEnv): string | undefined {
  if (!process.stdout.isTTY) return 'dumb'
  const term = env['TERM'] ?? ''
  return /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/.test(term) ? term : undefined
}
