import { constants } from 'node:os'
import type { TerminalEnd } from '../../net/attachment.ts'

/** Exit code of a session that is lost, or was left (contract §9). */
const lostExit = 255

const signals: Readonly<Record<string, number>> = constants.signals

/** The exit code of a session that ended so, and what is said of it: nothing where its shell ended by itself. */
export function endingOf(end: TerminalEnd): { readonly exit: number; readonly message: string | null } {
  switch (end.kind) {
    case 'left':
      return { exit: lostExit, message: 'left; the session is ended' }
    case 'lost':
      return { exit: lostExit, message: `session lost: ${end.error.message}` }
    case 'closed': {
      const { exitCode, signal, reason } = end.closed
      if (reason !== null) return { exit: lostExit, message: `the session was ended: ${reason}` }
      if (signal !== null) return { exit: 128 + (signals[signal] ?? 127), message: `ended by ${signal}` }
      return { exit: (exitCode ?? lostExit) & 0xff, message: null }
    }
  }
}

export function endingOfWatch(end: TerminalEnd): { readonly exit: number; readonly message: string | null } {
  if (end.kind === 'left') return { exit: 0, message: null }
  const { exit, message } = endingOf(end)
  if (end.kind === 'lost') return { exit, message }
  return { exit: 0, message: message ?? `the session has ended with exit code ${exit}` }
}
