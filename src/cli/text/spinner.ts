import { columnsOf, isUtf8, isWatched } from './screen.ts'

/**
 * Shows on a terminal that the command waits; writes nothing elsewhere. Stops when the work ends or fails. The work may report
 * its progress.
 */
export async function withSpinner<T>(
  text: string,
  work: (say: (text: string) => void) => Promise<T>,
): Promise<T> {
  // ora clears lines without end where the terminal does not tell its width.
  if (!isWatched() || columnsOf(process.stderr) === undefined) return work(() => {})
  const { default: ora } = await import('ora')
  // Ctrl-C belongs to the command, which knows what to cancel.
  const frames = isUtf8() ? {} : { spinner: 'line' as const }
  const spinner = ora({ text, stream: process.stderr, discardStdin: false, ...frames }).start()
  try {
    return await work((now) => {
      spinner.text = now
    })
  } finally {
    spinner.stop()
  }
}
