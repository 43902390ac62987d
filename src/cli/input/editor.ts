import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'

const noTerminal = (instead: string) => new RsmError('usage', 'no terminal for the editor', { hint: instead })

/** The user's editor, from the same variables that git and crontab read. */
function editorOf(env: NodeJS.ProcessEnv): string {
  return env['VISUAL'] || env['EDITOR'] || 'vi'
}

/** Edited text, in a file that only its owner can read. */
interface EditedText {
  readonly path: string
  readonly text: string
  /** Removes the file; call it late, so that no failure loses the user's changes. */
  readonly remove: () => void
}

/**
 * Opens the editor on `text` in a file called `name`, on the terminal even if stdin and stdout are redirected. Rejects without
 * leaving a file if the editor fails; `instead` is the hint if there is no terminal.
 */
export async function editText(text: string, name: string, instead: string): Promise<EditedText> {
  const editor = editorOf(process.env)
  let terminal: number
  try {
    terminal = openSync('/dev/tty', 'r+')
  } catch {
    throw noTerminal(instead)
  }
  const directory = mkdtempSync(join(tmpdir(), 'rsm-edit-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  // Leave Ctrl-C to the editor: the signal reaches the whole foreground process group.
  const ignore = () => {}
  process.on('SIGINT', ignore).on('SIGQUIT', ignore)
  try {
    const path = join(directory, name)
    writeFileSync(path, text, { mode: 0o600 })
    // Uses a shell, because the variable may contain options: EDITOR='code --wait'.
    const child = spawn('/bin/sh', ['-c', `${editor} "$@"`, editor, path], {
      stdio: [terminal, terminal, terminal],
    })
    const [exit, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    if (exit !== 0)
      throw new RsmError(
        'internal',
        `${editor} ended with ${signal ?? `exit ${exit}`}; nothing was changed`,
        {
          hint: 'set VISUAL or EDITOR to choose an editor',
        },
      )
    return { path, text: readFileSync(path, 'utf8'), remove }
  } catch (error) {
    remove()
    throw error
  } finally {
    process.off('SIGINT', ignore).off('SIGQUIT', ignore)
    closeSync(terminal)
  }
}
