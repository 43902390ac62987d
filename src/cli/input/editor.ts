import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'

const noTerminal = (instead: string) =>
  new RsmError('usage', 'there is no terminal for an editor', { hint: instead })

/** The user's editor, by the variables that git and crontab read. */
function editorOf(env: NodeJS.ProcessEnv): string {
  return env['VISUAL'] || env['EDITOR'] || 'vi'
}

/** A text that is being edited: in a file that none but its owner can read. */
interface EditedText {
  readonly path: string
  readonly text: string
  /** Removes the file; until then it is kept, so that no failure loses what was typed. */
  readonly remove: () => void
}

/**
 * Opens the editor on `text`, in a file of this name, on the terminal, wherever stdin and stdout lead. Rejects, and
 * leaves no file, where the editor did not run or ended with a failure; `instead` is the hint where there is no terminal.
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
  // A Ctrl-C in the editor is the editor's: it reaches the whole foreground group.
  const ignore = () => {}
  process.on('SIGINT', ignore).on('SIGQUIT', ignore)
  try {
    const path = join(directory, name)
    writeFileSync(path, text, { mode: 0o600 })
    // By a shell, because the variable may hold options: EDITOR='code --wait'.
    const child = spawn('/bin/sh', ['-c', `${editor} "$@"`, editor, path], {
      stdio: [terminal, terminal, terminal],
    })
    const [exit, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    if (exit !== 0)
      throw new RsmError(
        'internal',
        `${editor} ended with ${signal ?? `exit ${exit}`}; nothing was changed`,
        {
          hint: 'VISUAL or EDITOR names the editor',
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
