import { columnsOf, isUtf8, isWatched } from './screen.ts'

/** Shows a spinner on a terminal until the work ends or fails; writes nothing elsewhere. `say` changes its text. */
export async function withSpinner<T>(
  text: string,
  work: (say: (text: string) => void) => Promise<T>,
): Promise<T> {
  // ora clears lines endlessly if the terminal width is unknown.
  if (!isWatched() || columnsOf(process.stderr) === undefined) return work(() => {})
  const { default: ora } = await import('ora')
  // Ctrl-C is left to the command, which knows what to cancel.
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
