import { constants } from 'node:os'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ends the process with a signal's exit code, once `remove` has removed what it would leave half written; answers how to stop that. */
export function removeOnSignal(remove: () => void): () => void {
  const onSignal = (signal: NodeJS.Signals) => {
    remove()
    process.exit(128 + constants.signals[signal])
  }
  for (const signal of signals) process.on(signal, onSignal)
  return () => {
    for (const signal of signals) process.off(signal, onSignal)
  }
}
