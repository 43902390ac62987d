import { widthOf } from '../text/width.ts'
import { isOnPath } from './own-command.ts'

/** The exit codes of a shell that cannot start a command. */
const notStarted = new Set<number | null>([126, 127])

/** $PAGER, else `less` if installed; undefined for no paging. */
export function pagerCommand(env: NodeJS.ProcessEnv): string | undefined {
  const named = env['PAGER']?.trim()
  if (named === '' || named === 'cat' || env['TERM'] === 'dumb') return undefined
  return named ?? (isOnPath('less', env['PATH'] ?? '') ? 'less' : undefined)
}

/** Whether the text exceeds the screen, whose last line is left for the prompt. */
export function isLongerThan(text: string, { rows, columns }: { rows: number; columns: number }): boolean {
  const lines = text.split('\n')
  if (lines.length >= rows) return true
  const needed = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0)
  return needed >= rows
}

/** Resolves when the pager exits, even if it is quit early; false if it could not be started and nothing was shown. */
export async function showInPager(text: string, command: string): Promise<boolean> {
  const { spawn } = await import('node:child_process')
  // Runs $PAGER in a shell, like git and man. LESS: -F and -X leave a single screen of text in place; -R shows colours.
  const pager = spawn('/bin/sh', ['-c', command], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: 'FRX', ...process.env },
  })
  // Leave Ctrl-C to the pager: if rsm exited first, pager and shell would both read the terminal.
  const ignore = () => {}
  process.on('SIGINT', ignore)
  try {
    const ended = new Promise<number | null>((resolve, reject) => {
      pager.once('error', reject)
      pager.once('close', resolve)
    })
    // EPIPE: the pager quit before reading everything.
    pager.stdin.on('error', ignore)
    pager.stdin.end(text)
    return !notStarted.has(await ended)
  } finally {
    process.off('SIGINT', ignore)
  }
}
