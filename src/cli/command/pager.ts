import { widthOf } from '../text/width.ts'
import { isOnPath } from './own-command.ts'

/** The exit codes of a shell that cannot start a command. */
const notStarted = new Set<number | null>([126, 127])

/** The command line that $PAGER says, else less where there is one; undefined where nothing is to page. */
export function pagerCommand(env: NodeJS.ProcessEnv): string | undefined {
  const named = env['PAGER']?.trim()
  if (named === '' || named === 'cat' || env['TERM'] === 'dumb') return undefined
  return named ?? (isOnPath('less', env['PATH'] ?? '') ? 'less' : undefined)
}

/** Whether the text needs more lines than the screen has; the last one is left for the prompt. */
export function isLongerThan(text: string, { rows, columns }: { rows: number; columns: number }): boolean {
  const lines = text.split('\n')
  if (lines.length >= rows) return true
  const needed = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0)
  return needed >= rows
}

/**
 * Shows a text through the pager, and resolves when that has ended, however early. False where it could not be started:
 * nothing was shown then.
 */
export async function showInPager(text: string, command: string): Promise<boolean> {
  const { spawn } = await import('node:child_process')
  // $PAGER is a command line, read by a shell, as git and man read it. -F and -X: a text of one screen stays on it; -R: colours.
  const pager = spawn('/bin/sh', ['-c', command], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: 'FRX', ...process.env },
  })
  // Ctrl-C is the pager's, which gives the terminal back; ending first would leave both reading from it.
  const ignore = () => {}
  process.on('SIGINT', ignore)
  try {
    const ended = new Promise<number | null>((resolve, reject) => {
      pager.once('error', reject)
      pager.once('close', resolve)
    })
    // Quit before it had read everything.
    pager.stdin.on('error', ignore)
    pager.stdin.end(text)
    return !notStarted.has(await ended)
  } finally {
    process.off('SIGINT', ignore)
  }
}
