import { failureOf, reportFailure, unwritable } from '../command/failure.ts'

const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 } as const
/** 128 + SIGPIPE, as for a program whose reader is gone. */
const brokenPipe = 141

export interface Departure {
  readonly exit: number | undefined
  stop(): void
}

/** Calls `leave` on a terminating signal, or when stdout fails; a second one ends the process immediately. */
export function onDeparture(leave: () => void): Departure {
  let exit: number | undefined
  const depart = (code: number) => {
    if (exit !== undefined) process.exit(exit)
    exit = code
    leave()
  }
  const handlers = Object.entries(signals).map(([name, code]) => [name, () => depart(code)] as const)
  for (const [name, handler] of handlers) process.on(name, handler)
  // Other commands exit when stdout closes; here the session would be left waiting.
  const others = process.stdout.listeners('error') as ((error: Error) => void)[]
  for (const listener of others) process.stdout.off('error', listener)
  const closed = (error: NodeJS.ErrnoException) => {
    if (exit !== undefined) return
    depart(error.code === 'EPIPE' ? brokenPipe : reportFailure(failureOf(unwritable(error)), false))
  }
  process.stdout.on('error', closed)
  return {
    get exit() {
      return exit
    },
    stop() {
      for (const [name, handler] of handlers) process.off(name, handler)
      process.stdout.off('error', closed)
      for (const listener of others) process.stdout.on('error', listener)
    },
  }
}
