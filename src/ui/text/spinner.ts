import { isUtf8, isWatched } from './screen.ts'

/**
 * Shows that something is waited for, to people who watch; elsewhere it says nothing. Ends with the work, however that ends.
 * The work may say what it has come to.
 */
export async function withSpinner<T>(
  text: string,
  work: (say: (text: string) => void) => Promise<T>,
): Promise<T> {
  if (!isWatched()) return work(() => {})
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
